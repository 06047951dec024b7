#include "exec/runner/op_annotation.h"

#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>

#include "traces/format/op_args.h"

namespace polyphony::exec {
namespace {

using Arguments = std::unordered_map<std::string, c10::IValue>;

Arguments arguments_of(const Program& program, OpId op) {
  traces::JsonText text;
  text << "{\"op\": " << op.value;
  traces::write_args(program, program.ops[op.value], text);
  text << "}";
  const nlohmann::json object = nlohmann::json::parse(text.take());
  Arguments arguments;
  for (const auto& [key, value] : object.items())
    arguments.emplace(key, value.is_string() ? c10::IValue(value.get<std::string>())
                                             : c10::IValue(value.get<std::int64_t>()));
  return arguments;
}

}  // namespace

OpAnnotation::OpAnnotation(const Program& program, OpId op) : range_(at::RecordScope::USER_SCOPE) {
  if (!range_.isActive()) return;
  const Arguments arguments = arguments_of(program, op);
  range_.before(describe(program, op), c10::ArrayRef<const c10::IValue>(), &arguments);
}

}  // namespace polyphony::exec
