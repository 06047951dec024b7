#include "sim/console/failure.h"

#include <iostream>
#include <string_view>

#include "sim/answer_json/answer_schema.h"

namespace polyphony::sim {
namespace {

struct Failure {
  const InputError& error;
  ExitCode code;
};

const JsonKeys<Failure>& failure_keys() {
  static const JsonKeys<Failure> keys{
      {"file", a("string"), "file, option or command that it is about; may be empty",
       [](const Failure& f) { return (f.error.argument ? "--" : "") + f.error.file; }},
      {"pointer", a("string"), "RFC 6901 pointer into that file; empty: the whole of it",
       [](const Failure& f) { return f.error.pointer; }},
      {"what", a("string"), "is wrong", [](const Failure& f) { return f.error.what_is_wrong; }},
      {"fix", a("string"), "what to do about it; may be empty",
       [](const Failure& f) { return f.error.hint; }},
      {"exit_code", a("integer"), "1 failed, 2 bad input, 3 infeasible",
       [](const Failure& f) { return static_cast<int>(f.code); }}};
  return keys;
}

}  // namespace

bool wants_json(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--format=json") return true;
    if (argument == "--format" && i + 1 < argc && std::string_view(argv[i + 1]) == "json")
      return true;
  }
  return false;
}

int report_failure(const InputError& error, ExitCode code, const std::string& line, bool json) {
  if (!line.empty()) std::cerr << line << "\n";
  if (json)
    std::cout << nlohmann::json{{"error", object_of(failure_keys(), Failure{error, code})}}.dump(
                     2, ' ', false, nlohmann::json::error_handler_t::replace)
              << std::endl;
  return static_cast<int>(code);
}

std::string error_schema() {
  return schema_document("--format json of a command that fails",
                         {{"type", "object"},
                          {"properties", {{"error", schema_of(failure_keys(), "why")}}},
                          {"required", nlohmann::json::array({"error"})},
                          {"additionalProperties", false}},
                         nlohmann::json::object());
}

}  // namespace polyphony::sim
