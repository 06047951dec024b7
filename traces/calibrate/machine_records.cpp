#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "shared/error.h"
#include "traces/calibrate/machine_profile.h"
#include "traces/format/json_place.h"

namespace polyphony::traces {
namespace {

using nlohmann::json;

constexpr const char* kHint = "profile the machine again; format: traces/README.md";

class Line {
 public:
  Line(const std::string& text, std::string place)
      : place_(std::move(place)), value_(parse_json(text, place_, kHint)) {
    if (!value_.is_object()) fail("", "an object is expected");
  }

  [[noreturn]] void fail(const std::string& pointer, const std::string& what) const {
    throw InputError(place_, pointer, what, kHint);
  }

  std::string kind() const { return text("record"); }
  std::string text(const char* key) const {
    const json& value = member(key);
    if (!value.is_string()) fail(pointer(key), "a string is expected");
    return value.get<std::string>();
  }
  double positive(const char* key) const {
    const json& value = member(key);
    if (!value.is_number()) fail(pointer(key), "a number is expected");
    const auto number = value.get<double>();
    if (!(number > 0) || !std::isfinite(number)) fail(pointer(key), "a number above 0 is expected");
    return number;
  }
  std::int64_t count(const char* key) const {
    const double number = positive(key);
    if (number != std::floor(number) || number > 9007199254740992.0)
      fail(pointer(key), "a whole number is expected");
    return static_cast<std::int64_t>(number);
  }
  NumberFormat format() const {
    if (!value_.contains("format")) return NumberFormat::fp32;
    const std::string said = text("format");
    if (said != "fp32" && said != "bf16") fail("/format", "\"" + said + "\" is not fp32 or bf16");
    return said == "bf16" ? NumberFormat::bf16 : NumberFormat::fp32;
  }
  bool has(const char* key) const { return value_.contains(key); }
  bool is(const char* key) const {  // false if the key is missing
    if (!has(key)) return false;
    if (!member(key).is_boolean()) fail(pointer(key), "true or false is expected");
    return member(key).get<bool>();
  }
  Seconds time() const { return Seconds(positive("seconds")); }
  Bytes bytes() const { return Bytes(count("bytes")); }
  void only(const std::set<std::string>& keys) const {
    for (const auto& [key, value] : value_.items()) {
      if (key != "record" && !keys.contains(key)) fail(pointer(key), "the key is not known");
    }
  }

 private:
  static std::string pointer(const std::string& key) {
    return (json::json_pointer() / key).to_string();
  }
  const json& member(const char* key) const {
    const auto found = value_.find(key);
    if (found == value_.end()) fail(pointer(key), "the key is missing");
    return *found;
  }
  std::string place_;
  json value_;
};

MachineRecord record_of(const Line& line) {
  const std::string kind = line.kind();
  if (kind == "gemm") {
    line.only({"m", "n", "k", "seconds", "format"});
    return GemmRecord{line.count("m"), line.count("n"), line.count("k"), line.time(),
                      line.format()};
  }
  if (kind == "attention") {
    line.only({"flops", "seconds", "backward"});
    return AttentionRecord{Flops(line.positive("flops")), line.time(), line.is("backward")};
  }
  if (kind == "memcpy") {
    line.only({"bytes", "seconds"});
    return MemcpyRecord{line.bytes(), line.time()};
  }
  if (kind == "pass") {
    line.only({"bytes", "seconds"});
    return PassRecord{line.bytes(), line.time()};
  }
  if (kind == "message") {
    line.only({"bytes", "seconds"});
    return MessageRecord{line.bytes(), line.time()};
  }
  if (kind != "all_reduce") {
    line.fail("/record",
              "\"" + kind + "\" is not one of gemm, attention, memcpy, pass, message, all_reduce");
  }
  line.only({"ranks", "bytes", "seconds", "processor_seconds"});
  const std::int64_t ranks = line.count("ranks");
  if (ranks < 2 || ranks > 1 << 20) line.fail("/ranks", "an all-reduce needs 2 ranks or more");
  return AllReduceRecord{
      static_cast<int>(ranks), line.bytes(), line.time(),
      Seconds(line.has("processor_seconds") ? line.positive("processor_seconds") : 0)};
}

}  // namespace

MachineRecords read_machine_records(const std::string& text, const std::string& file) {
  MachineRecords result;
  std::istringstream lines(text);
  std::string content;
  int number = 0;
  bool opened = false;
  while (std::getline(lines, content)) {
    ++number;
    if (content.find_first_not_of(" \t\r") == std::string::npos) continue;
    const Line line(content, file + ":" + std::to_string(number));
    if (opened) {
      result.records.push_back(record_of(line));
      continue;
    }
    if (line.kind() != "machine") line.fail("/record", "the first record must be \"machine\"");
    line.only({"format", "software"});
    if (line.count("format") != 1) line.fail("/format", "format 1 is expected");
    result.software = line.text("software");
    opened = true;
  }
  if (!opened) throw InputError(file, "", "the file holds no records", kHint);
  return result;
}

}  // namespace polyphony::traces
