// Builds the messages of a Chakra execution trace: the header of a file, and its nodes, each
// preceded by its length. Attributes have the types that Chakra's second feeder reads (the third
// feeder accepts any integer type). Source: Chakra, et_def.proto 0.0.4.
#pragma once

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "shared/error.h"
#include "shared/units.h"
#include "shared/work/work_size.h"
#include "traces/chakra/wire.h"

namespace polyphony::traces {

enum class NodeType : std::uint64_t {
  load = 2,
  store = 3,
  compute = 4,
  send = 5,
  receive = 6,
  collective = 7
};
enum class ValueType : int { int32 = 7, int64 = 9, uint64 = 13, boolean = 27, string = 29 };
enum class On : std::uint64_t { device = 0, processor = 1 };

inline WireMessage attribute(std::string_view name, ValueType type, std::uint64_t value) {
  return WireMessage().text(1, name).number(static_cast<int>(type), value);
}
inline WireMessage attribute(std::string_view name, std::string_view value) {
  return WireMessage().text(1, name).text(static_cast<int>(ValueType::string), value);
}

// Returns Chakra's CollectiveCommType of a collective.
inline std::uint64_t comm_type(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::all_reduce_max:
      return 0;
    case CollectiveKind::all_gather:
      return 2;
    case CollectiveKind::all_to_all:
      return 6;
    case CollectiveKind::reduce_scatter:
      return 7;
  }
  POLYPHONY_CHECK(false, "no such kind");
}

// Returns comm_size, the bytes that one rank contributes. `bytes` is the size of the whole array;
// to an all-gather a rank contributes 1/ranks of it.
inline Bytes given_in(CollectiveKind kind, Bytes bytes, std::size_t ranks) {
  return kind == CollectiveKind::all_gather ? bytes / static_cast<std::int64_t>(ranks) : bytes;
}

// Metadata of a file.
struct TraceHead {
  std::uint64_t program = 0;
  std::uint32_t rank = 0, ranks = 0;
};
inline std::string trace_head(const TraceHead& head) {
  char program[20];
  std::snprintf(program, sizeof program, "%016" PRIx64, head.program);
  std::string file;
  WireMessage()
      .text(1, "0.0.4")
      .message(2, attribute("producer", "polyphony"))
      .message(2, attribute("program", program))
      .message(2, attribute("rank", ValueType::int64, head.rank))
      .message(2, attribute("world_size", ValueType::int64, head.ranks))
      .append_to(file);
  return file;
}

struct Span {
  Seconds start{}, end{};
};

class NodeWriter {
 public:
  NodeWriter(std::uint64_t id, const std::string& name, NodeType type,
             const std::vector<std::uint64_t>& after, Span span, On on = On::device) {
    node_.number(1, id).text(2, name).number(3, static_cast<std::uint64_t>(type)).packed(5, after);
    const std::uint64_t start = rounded(span.start, kMicro), end = rounded(span.end, kMicro);
    node_.number(6, start).number(7, std::max(start, end) - start);
    const std::uint64_t from = rounded(span.start, kNano), to = rounded(span.end, kNano);
    add("is_cpu_op", ValueType::boolean, static_cast<std::uint64_t>(on));
    add("duration_nanos", ValueType::uint64, std::max(from, to) - from);
  }
  NodeWriter& add(std::string_view name, ValueType type, std::uint64_t value) {
    node_.message(10, attribute(name, type, value));
    return *this;
  }
  NodeWriter& add(std::string_view name, std::string_view value) {
    node_.message(10, attribute(name, value));
    return *this;
  }
  void append_to(std::string& file) const { node_.append_to(file); }

 private:
  static constexpr double kMicro = 1e6, kNano = 1e9;
  static std::uint64_t rounded(Seconds time, double a_second) {
    return static_cast<std::uint64_t>(std::llround(std::max(0.0, time.count() * a_second)));
  }

  WireMessage node_;
};

}  // namespace polyphony::traces
