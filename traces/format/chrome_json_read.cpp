#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>

#include "shared/error.h"
#include "traces/format/chrome_json.h"
#include "traces/format/json_place.h"

namespace polyphony::traces {
namespace {

using nlohmann::json;

constexpr const char* kHint = "write the trace again; format: traces/README.md";
// 2^53 ns is 104 days: the largest time that a double represents to the nanosecond.
constexpr double kLongest = 9007199254740992.0;

Seconds seconds(double ns) { return Seconds(ns / 1e9); }

class Reader {
 public:
  Reader(const std::string& text, const std::string& file)
      : file_(file), root_(parse_json(text, file, kHint)) {
    if (!root_.is_object() || !root_.contains("polyphony")) {
      fail("/polyphony", "this is not a trace of Polyphony: the key is missing",
           "give a file that `polyphony simulate` or `polyphony-worker` wrote");
    }
  }

  TraceInfo info() const {
    const json& head = object(root_, "", "polyphony");
    // Format 1 differs in names, categories and arguments that are not read here.
    if (const auto format = integer(head, "/polyphony", "format"); format != 1 && format != 2) {
      fail("/polyphony/format", "trace format " + head.at("format").dump() + " is not known",
           "this version reads formats 1 and 2");
    }
    TraceInfo info;
    const std::string kind = string(head, "/polyphony", "kind");
    if (kind != "predicted" && kind != "measured") {
      fail("/polyphony/kind", "\"" + kind + "\" is neither \"predicted\" nor \"measured\"", kHint);
    }
    info.kind = kind == "predicted" ? TraceKind::predicted : TraceKind::measured;
    info.program = hash_value(string(head, "/polyphony", "program"));
    info.step = static_cast<std::uint64_t>(integer(head, "/polyphony", "step"));
    info.ranks = static_cast<std::uint32_t>(integer(head, "/polyphony", "ranks"));
    if (head.contains("late_plan")) {
      if (!head["late_plan"].is_boolean())
        fail("/polyphony/late_plan", "true or false is expected", kHint);
      info.late_plan = head["late_plan"].get<bool>();
    }
    if (head.contains("clock")) {
      const json& clock = object(head, "/polyphony", "clock");
      const auto number = [&](const char* key) {
        const json& value = member(clock, "/polyphony/clock", key);
        if (!value.is_number())
          fail(std::string("/polyphony/clock/") + key, "a number is expected", kHint);
        return value.get<double>() / 1e9;
      };
      info.clock =
          ClockNote{Seconds(number("offset_ns")), Seconds(number("error_ns")), number("drift_ppb")};
    }
    if (root_.contains("distributedInfo")) {
      const auto rank = integer(object(root_, "", "distributedInfo"), "/distributedInfo", "rank");
      if (rank >= info.ranks) {
        fail("/distributedInfo/rank",
             "rank " + std::to_string(rank) + " does not exist among " + std::to_string(info.ranks),
             kHint);
      }
      info.rank = Rank(static_cast<std::size_t>(rank));
    }
    return info;
  }

  Trace trace(const Program& program) const {
    Trace trace;
    trace.info = info();
    if (trace.info.program != hash(program)) {
      fail("/polyphony/program",
           "the trace is of another Program (another scenario, layout, batch or version)",
           "give the scenario, layout and step with which it was recorded");
    }
    const json& events = member(root_, "", "traceEvents");
    if (!events.is_array()) fail("/traceEvents", "an array is expected", kHint);
    for (std::size_t i = 0; i < events.size(); ++i) {
      const std::string at = "/traceEvents/" + std::to_string(i);
      const std::string ph = string(events[i], at, "ph");
      const json category = events[i].value("cat", json());
      if (ph == "X" &&
          (category == kDataCategory || category == kStepCategory || category == kLaunchCategory))
        continue;
      if (ph == "X") {
        trace.timeline.ops.push_back(op_time(events[i], at, program, trace.info));
      } else if (ph != "M" && ph != "s" && ph != "f" && ph != "C") {
        fail(at + "/ph", "event type \"" + ph + "\" is not written by Polyphony", kHint);
      }
    }
    finish(trace.timeline);
    return trace;
  }

 private:
  [[noreturn]] void fail(const std::string& pointer, const std::string& what,
                         const std::string& hint) const {
    throw InputError(file_, pointer, what, hint);
  }

  const json& member(const json& in, const std::string& at, const char* key) const {
    if (!in.is_object()) fail(at, "an object is expected", kHint);
    const auto found = in.find(key);
    if (found == in.end()) fail(at + "/" + key, "the key is missing", kHint);
    return *found;
  }
  const json& object(const json& in, const std::string& at, const char* key) const {
    const json& value = member(in, at, key);
    if (!value.is_object()) fail(at + "/" + key, "an object is expected", kHint);
    return value;
  }
  std::string string(const json& in, const std::string& at, const char* key) const {
    const json& value = member(in, at, key);
    if (!value.is_string()) fail(at + "/" + key, "a string is expected", kHint);
    return value.get<std::string>();
  }
  std::int64_t integer(const json& in, const std::string& at, const char* key) const {
    const json& value = member(in, at, key);
    const bool fits = value.is_number_integer() &&
                      (!value.is_number_unsigned() ||
                       value.get<std::uint64_t>() <=
                           static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()));
    if (!fits || value.get<std::int64_t>() < 0)
      fail(at + "/" + key, "an integer of at least 0 is expected", kHint);
    return value.get<std::int64_t>();
  }
  // Converts the microseconds of the file to integer nanoseconds.
  double time(const json& in, const std::string& at, const char* key) const {
    const json& value = member(in, at, key);
    if (!value.is_number()) fail(at + "/" + key, "a number of microseconds is expected", kHint);
    const double ns = std::round(value.get<double>() * 1000);
    if (!(std::abs(ns) <= kLongest)) fail(at + "/" + key, "the time is out of range", kHint);
    return ns;
  }

  std::uint64_t hash_value(const std::string& text) const {
    const bool hex =
        text.size() == 16 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (!hex) fail("/polyphony/program", "16 hexadecimal digits are expected", kHint);
    return std::stoull(text, nullptr, 16);
  }

  OpTime op_time(const json& event, const std::string& at, const Program& program,
                 const TraceInfo& info) const {
    const auto op = integer(object(event, at, "args"), at + "/args", "op");
    if (op >= static_cast<std::int64_t>(program.ops.size())) {
      fail(at + "/args/op",
           "op " + std::to_string(op) + " does not exist: the Program has " +
               std::to_string(program.ops.size()) + " ops",
           kHint);
    }
    const OpId id(static_cast<std::size_t>(op));
    const StreamId stream = program.ops[id.value].stream;
    const Rank rank = program.rank_of(program.ops[id.value]);
    if (integer(event, at, "pid") != std::int64_t{rank.value} + 1 ||
        integer(event, at, "tid") != std::int64_t{program.ranks} + 1 + stream.value) {
      fail(at, "op " + std::to_string(op) + " is shown on another rank or stream than its own",
           kHint);
    }
    if (info.rank && *info.rank != rank) {
      fail(at + "/args/op",
           "op " + std::to_string(op) + " belongs to rank " + std::to_string(rank.value) +
               " and the file is of rank " + std::to_string(info.rank->value),
           kHint);
    }
    const double start = time(event, at, "ts");
    const double duration = time(event, at, "dur");
    if (duration < 0) fail(at + "/dur", "a duration must not be negative", kHint);
    OpTime result{id, seconds(start), seconds(start + duration)};
    if (!event.contains("tdur")) return result;
    const double processor = time(event, at, "tdur");
    if (processor < 0) fail(at + "/tdur", "a processor time must not be negative", kHint);
    result.processor = seconds(processor);
    return result;
  }

  void finish(Timeline& timeline) const {
    const json& head = root_.at("polyphony");
    const auto expected = integer(head, "/polyphony", "ops");
    if (expected != static_cast<std::int64_t>(timeline.ops.size())) {
      fail("/polyphony/ops",
           "the trace announces " + std::to_string(expected) + " ops and holds " +
               std::to_string(timeline.ops.size()),
           kHint);
    }
    std::sort(timeline.ops.begin(), timeline.ops.end());
    const auto same = [](const OpTime& a, const OpTime& b) { return a.op == b.op; };
    const auto twice = std::adjacent_find(timeline.ops.begin(), timeline.ops.end(), same);
    if (twice != timeline.ops.end()) {
      fail("/traceEvents", "op " + std::to_string(twice->op.value) + " appears twice", kHint);
    }
    timeline.makespan = seconds(static_cast<double>(integer(head, "/polyphony", "makespan_ns")));
  }

  std::string file_;
  json root_;
};

}  // namespace

TraceInfo read_trace_info(const std::string& text, const std::string& file) {
  return Reader(text, file).info();
}

Trace read_trace(const std::string& text, const std::string& file, const Program& program) {
  return Reader(text, file).trace(program);
}

}  // namespace polyphony::traces
