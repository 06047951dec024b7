#include "traces/chrome_json.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>

#include "shared/error.h"

namespace polyphony::traces {
namespace {

std::int64_t nanoseconds(Seconds time) { return std::llround(time.count() * 1e9); }

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Exact: never through a double.
std::string microseconds(std::int64_t ns) {
  char text[40];
  const std::int64_t size = ns < 0 ? -ns : ns;
  std::snprintf(text, sizeof text, "%s%" PRId64 ".%03d", ns < 0 ? "-" : "", size / 1000,
                static_cast<int>(size % 1000));
  return text;
}

std::string layers_text(LayerRange layers) {
  return "[" + std::to_string(layers.begin) + "," + std::to_string(layers.end) + ")";
}

Bytes bytes_of(const Program& program, const Exchange& exchange) {
  Bytes sum{};
  for (auto i = exchange.messages.begin; i < exchange.messages.end; ++i) {
    sum += program.messages[program.exchange_messages[i].value].bytes;
  }
  return sum;
}

// The fields of "args" after the op id, each led by a comma.
struct ArgsOf {
  const Program& program;
  std::string operator()(const Compute& op) const {
    return ", \"module\": " + quoted(program.model.modules[op.module.value].name) +
           ", \"layers\": \"" + layers_text(op.layers) + "\", \"phase\": \"" +
           polyphony::name(op.phase) + "\", \"work\": " + std::to_string(op.work.value);
  }
  std::string operator()(const Exchange& op) const {
    return std::string(", \"phase\": \"") + (op.sends ? "send" : "receive") +
           "\", \"messages\": " + std::to_string(op.messages.size()) +
           ", \"bytes\": " + std::to_string(bytes_of(program, op).value);
  }
  std::string operator()(const Collective& op) const {
    std::string text = std::string(", \"phase\": \"") + polyphony::name(op.kind) + "\"";
    if (op.params.valid()) {
      const ParamGroup& params = program.params[op.params.value];
      text += ", \"module\": " + quoted(program.model.modules[params.module.value].name) +
              ", \"layers\": \"" + layers_text(params.layers) + "\"";
    }
    return text + ", \"bytes\": " + std::to_string(op.bytes.value);
  }
  std::string operator()(const Update& op) const {
    Bytes sum{};
    for (auto i = op.params.begin; i < op.params.end; ++i) sum += program.params[i].bytes;
    return ", \"phase\": \"optimizer\", \"bytes\": " + std::to_string(sum.value);
  }
};

class Writer {
 public:
  Writer(const Program& program, const Timeline& timeline)
      : program_(program), timeline_(timeline) {}

  std::string write(TraceKind kind, std::uint64_t step) {
    std::set<Rank> ranks;
    for (const OpTime& time : timeline_.ops) ranks.insert(rank_of(time.op));
    write_head(kind, step, ranks);
    for (Rank rank : ranks) write_names(rank);
    for (const OpTime& time : timeline_.ops) write_op(time);
    write_flows();
    if (text_.ends_with(",\n")) text_.resize(text_.size() - 2);
    text_ += "\n]\n}\n";
    return std::move(text_);
  }

 private:
  Rank rank_of(OpId op) const { return program_.rank_of(program_.ops[op.value]); }

  std::string where(StreamId stream) const {
    return "\"pid\": " + std::to_string(program_.streams[stream.value].rank.value + 1) +
           ", \"tid\": " + std::to_string(program_.ranks + 1 + stream.value);
  }

  void write_head(TraceKind kind, std::uint64_t step, const std::set<Rank>& ranks) {
    char hash_text[20];
    std::snprintf(hash_text, sizeof hash_text, "%016" PRIx64, hash(program_));
    text_ += "{\n\"displayTimeUnit\": \"ms\",\n";
    if (ranks.size() == 1) {
      text_ += "\"distributedInfo\": {\"rank\": " + std::to_string(ranks.begin()->value) +
               ", \"world_size\": " + std::to_string(program_.ranks) + "},\n";
    }
    text_ += "\"polyphony\": {\"format\": 1, \"kind\": \"" + std::string(name(kind)) +
             "\", \"program\": \"" + hash_text + "\", \"step\": " + std::to_string(step) +
             ", \"ranks\": " + std::to_string(program_.ranks) +
             ", \"ops\": " + std::to_string(timeline_.ops.size()) +
             ", \"makespan_ns\": " + std::to_string(nanoseconds(timeline_.makespan)) + "},\n";
    text_ += "\"traceEvents\": [\n";
  }

  void write_meta(const std::string& what, const std::string& place, const std::string& args) {
    text_ +=
        "{\"ph\": \"M\", \"name\": \"" + what + "\", " + place + ", \"args\": {" + args + "}},\n";
  }

  void write_names(Rank rank) {
    const std::string pid = "\"pid\": " + std::to_string(rank.value + 1);
    write_meta("process_name", pid, "\"name\": \"rank " + std::to_string(rank.value) + "\"");
    write_meta("process_sort_index", pid, "\"sort_index\": " + std::to_string(rank.value));
    for (std::size_t s = 0; s < program_.streams.size(); ++s) {
      if (program_.streams[s].rank != rank) continue;
      write_meta("thread_name", where(StreamId(s)),
                 "\"name\": " + quoted(program_.streams[s].name));
      write_meta("thread_sort_index", where(StreamId(s)), "\"sort_index\": " + std::to_string(s));
    }
  }

  void write_op(const OpTime& time) {
    const Op& op = program_.ops[time.op.value];
    const std::int64_t start = nanoseconds(time.start);
    text_ += "{\"ph\": \"X\", \"name\": " + quoted(describe(program_, time.op)) + ", \"cat\": \"" +
             polyphony::name(program_.streams[op.stream.value].kind) + "\", " + where(op.stream) +
             ", \"ts\": " + microseconds(start) +
             ", \"dur\": " + microseconds(nanoseconds(time.end) - start) +
             ", \"args\": {\"op\": " + std::to_string(time.op.value) +
             std::visit(ArgsOf{program_}, op.what) + "}},\n";
  }

  // A flow leaves the send at its start and lands in the receive when both have started (but inside
  // its slice).
  void write_flows() {
    std::vector<const OpTime*> send(program_.messages.size(), nullptr);
    for (const OpTime& time : timeline_.ops)
      each_message(time, true, [&](MessageId m) { send[m.value] = &time; });
    for (const OpTime& time : timeline_.ops) {
      each_message(time, true,
                   [&](MessageId m) { write_flow("s", m, time, nanoseconds(time.start)); });
      each_message(time, false, [&](MessageId m) {
        const std::int64_t start = nanoseconds(time.start);
        const std::int64_t last = std::max(start, nanoseconds(time.end) - 1);
        const OpTime* other = send[m.value];
        write_flow("f", m, time,
                   other == nullptr ? last : std::clamp(nanoseconds(other->start), start, last));
      });
    }
  }

  template <class Visit>
  void each_message(const OpTime& time, bool sends, Visit visit) const {
    const auto* exchange = std::get_if<Exchange>(&program_.ops[time.op.value].what);
    if (exchange == nullptr || exchange->sends != sends) return;
    for (auto i = exchange->messages.begin; i < exchange->messages.end; ++i)
      visit(program_.exchange_messages[i]);
  }

  void write_flow(const char* phase, MessageId message, const OpTime& time, std::int64_t at) {
    text_ +=
        std::string("{\"ph\": \"") + phase + "\", " + (phase[0] == 'f' ? "\"bp\": \"e\", " : "") +
        "\"name\": \"message\", \"cat\": \"message\", \"id\": " + std::to_string(message.value) +
        ", " + where(program_.ops[time.op.value].stream) + ", \"ts\": " + microseconds(at) + "},\n";
  }

  const Program& program_;
  const Timeline& timeline_;
  std::string text_;
};

}  // namespace

const char* name(TraceKind kind) { return kind == TraceKind::predicted ? "predicted" : "measured"; }

std::string write_trace(const Program& program, const Timeline& timeline, TraceKind kind,
                        std::uint64_t step) {
  for (const OpTime& time : timeline.ops) {
    POLYPHONY_CHECK(time.op.value < program.ops.size(), "op " << time.op.value);
  }
  return Writer(program, timeline).write(kind, step);
}

}  // namespace polyphony::traces
