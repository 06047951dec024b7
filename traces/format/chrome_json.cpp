#include "traces/format/chrome_json.h"

#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <cmath>
#include <concepts>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "shared/error.h"

namespace polyphony::traces {
namespace {

std::int64_t nanoseconds(Seconds time) { return std::llround(time.count() * 1e9); }

// Text that grows at its end: traces have hundreds of megabytes.
class Text {
 public:
  void reserve(std::size_t bytes) { bytes_.reserve(bytes); }
  Text& operator<<(std::string_view text) {
    bytes_.append(text);
    return *this;
  }
  template <std::integral Integer>
  Text& operator<<(Integer value) {
    char digits[24];
    bytes_.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
    return *this;
  }
  Text& quoted(const std::string& text) {
    const bool plain = std::all_of(text.begin(), text.end(), [](char c) {
      return c >= ' ' && c <= '~' && c != '"' && c != '\\';
    });
    if (plain) return *this << "\"" << text << "\"";
    return *this << nlohmann::json(text).dump(-1, ' ', false,
                                              nlohmann::json::error_handler_t::replace);
  }
  // Exact: never through a double.
  Text& microseconds(std::int64_t ns) {
    const std::int64_t size = ns < 0 ? -ns : ns, rest = size % 1000;
    return *this << (ns < 0 ? "-" : "") << size / 1000
                 << (rest < 10    ? ".00"
                     : rest < 100 ? ".0"
                                  : ".")
                 << rest;
  }
  bool ends_with(std::string_view text) const { return bytes_.ends_with(text); }
  void drop(std::size_t bytes) { bytes_.resize(bytes_.size() - bytes); }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

void write_layers(LayerRange layers, Text& text) {
  text << ", \"layers\": \"[" << layers.begin << "," << layers.end << ")\"";
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
  Text& text;
  void operator()(const Compute& op) const {
    text << ", \"module\": ";
    text.quoted(program.model.modules[op.module.value].name);
    write_layers(op.layers, text);
    text << ", \"phase\": \"" << polyphony::name(op.phase) << "\", \"work\": " << op.work.value;
  }
  void operator()(const Exchange& op) const {
    text << ", \"phase\": \"" << (op.sends ? "send" : "receive")
         << "\", \"messages\": " << op.messages.size()
         << ", \"bytes\": " << bytes_of(program, op).value;
  }
  void operator()(const Collective& op) const {
    text << ", \"phase\": \"" << polyphony::name(op.kind) << "\"";
    if (op.params.valid()) {
      const ParamGroup& params = program.params[op.params.value];
      text << ", \"module\": ";
      text.quoted(program.model.modules[params.module.value].name);
      write_layers(params.layers, text);
    }
    text << ", \"bytes\": " << op.bytes.value;
  }
  void operator()(const Update& op) const {
    Bytes sum{};
    for (auto i = op.params.begin; i < op.params.end; ++i) sum += program.params[i].bytes;
    text << ", \"phase\": \"optimizer\", \"bytes\": " << sum.value;
  }
};

class Writer {
 public:
  Writer(const Program& program, const Timeline& timeline, const TraceNotes& notes)
      : program_(program), timeline_(timeline), notes_(notes) {}

  std::string write(TraceKind kind, std::uint64_t step) {
    constexpr std::size_t kOpBytes = 240, kFlowBytes = 130;  // as seen, of one event
    std::size_t flows = 0;
    std::set<Rank> ranks;
    Rank last;
    for (const OpTime& time : timeline_.ops) {
      if (const Rank rank = rank_of(time.op); rank != last) ranks.insert(last = rank);
      if (const auto* exchange = std::get_if<Exchange>(&program_.ops[time.op.value].what))
        flows += exchange->messages.size();
    }
    text_.reserve(timeline_.ops.size() * kOpBytes + flows * kFlowBytes);
    write_head(kind, step, ranks);
    write_names(ranks);
    if (notes_.data && ranks.size() == 1) write_data(*notes_.data, *ranks.begin());
    for (const OpTime& time : timeline_.ops) write_op(time);
    write_flows();
    if (text_.ends_with(",\n")) text_.drop(2);
    text_ << "\n]\n}\n";
    return text_.take();
  }

 private:
  Rank rank_of(OpId op) const { return program_.rank_of(program_.ops[op.value]); }

  Text& where(StreamId stream) {
    return text_ << "\"pid\": " << program_.streams[stream.value].rank.value + 1
                 << ", \"tid\": " << program_.ranks + 1 + stream.value;
  }

  void write_head(TraceKind kind, std::uint64_t step, const std::set<Rank>& ranks) {
    char hash_text[20];
    std::snprintf(hash_text, sizeof hash_text, "%016" PRIx64, hash(program_));
    text_ << "{\n\"displayTimeUnit\": \"ms\",\n";
    if (ranks.size() == 1)
      text_ << "\"distributedInfo\": {\"rank\": " << ranks.begin()->value
            << ", \"world_size\": " << program_.ranks << "},\n";
    text_ << "\"polyphony\": {\"format\": 1, \"kind\": \"" << name(kind) << "\", \"program\": \""
          << hash_text << "\", \"step\": " << step << ", \"ranks\": " << program_.ranks
          << (notes_.late_plan ? ", \"late_plan\": true" : "");
    if (notes_.clock)
      text_ << ", \"clock\": {\"offset_ns\": " << nanoseconds(notes_.clock->offset)
            << ", \"error_ns\": " << nanoseconds(notes_.clock->error)
            << ", \"drift_ppb\": " << std::llround(notes_.clock->drift * 1e9) << "}";
    text_ << ", \"ops\": " << timeline_.ops.size()
          << ", \"makespan_ns\": " << nanoseconds(timeline_.makespan) << "},\n"
          << "\"traceEvents\": [\n";
  }

  Text& begin_meta(std::string_view what) {
    return text_ << "{\"ph\": \"M\", \"name\": \"" << what << "\", ";
  }

  void write_names(const std::set<Rank>& ranks) {
    std::vector<std::vector<StreamId>> streams(program_.ranks);
    for (std::size_t s = 0; s < program_.streams.size(); ++s)
      streams[program_.streams[s].rank.value].emplace_back(s);
    for (const Rank rank : ranks) {
      begin_meta("process_name") << "\"pid\": " << rank.value + 1
                                 << ", \"args\": {\"name\": \"rank " << rank.value << "\"}},\n";
      begin_meta("process_sort_index") << "\"pid\": " << rank.value + 1
                                       << ", \"args\": {\"sort_index\": " << rank.value << "}},\n";
      if (notes_.late_plan)
        begin_meta("process_labels")
            << "\"pid\": " << rank.value + 1 << ", \"args\": {\"labels\": \"late plan\"}},\n";
      for (const StreamId stream : streams[rank.value]) {
        begin_meta("thread_name");
        where(stream) << ", \"args\": {\"name\": ";
        text_.quoted(program_.streams[stream.value].name) << "}},\n";
        begin_meta("thread_sort_index");
        where(stream) << ", \"args\": {\"sort_index\": " << stream.value << "}},\n";
      }
    }
  }

  void write_data(const DataWait& wait, Rank rank) {
    const auto at = [&]() -> Text& {
      return text_ << "\"pid\": " << rank.value + 1
                   << ", \"tid\": " << program_.ranks + 1 + program_.streams.size() + rank.value;
    };
    begin_meta("thread_name");
    at() << ", \"args\": {\"name\": \"data\"}},\n";
    text_ << "{\"ph\": \"X\", \"name\": \"wait for data\", \"cat\": \"" << kDataCategory << "\", ";
    at() << ", \"ts\": ";
    text_.microseconds(nanoseconds(wait.start)) << ", \"dur\": ";
    text_.microseconds(nanoseconds(wait.end) - nanoseconds(wait.start)) << ", \"args\": {}},\n";
  }

  void write_op(const OpTime& time) {
    const Op& op = program_.ops[time.op.value];
    const std::int64_t start = nanoseconds(time.start);
    text_ << "{\"ph\": \"X\", \"name\": ";
    text_.quoted(describe(program_, time.op))
        << ", \"cat\": \"" << polyphony::name(program_.streams[op.stream.value].kind) << "\", ";
    where(op.stream) << ", \"ts\": ";
    text_.microseconds(start) << ", \"dur\": ";
    text_.microseconds(nanoseconds(time.end) - start);
    if (time.processor.count() >= 0) {
      text_ << ", \"tdur\": ";
      text_.microseconds(nanoseconds(time.processor));
    }
    text_ << ", \"args\": {\"op\": " << time.op.value;
    std::visit(ArgsOf{program_, text_}, op.what);
    text_ << "}},\n";
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
    text_ << "{\"ph\": \"" << phase << "\", " << (phase[0] == 'f' ? "\"bp\": \"e\", " : "")
          << "\"name\": \"message\", \"cat\": \"message\", \"id\": " << message.value << ", ";
    where(program_.ops[time.op.value].stream) << ", \"ts\": ";
    text_.microseconds(at) << "},\n";
  }

  const Program& program_;
  const Timeline& timeline_;
  const TraceNotes& notes_;
  Text text_;
};

}  // namespace

const char* name(TraceKind kind) { return kind == TraceKind::predicted ? "predicted" : "measured"; }

std::string write_trace(const Program& program, const Timeline& timeline, TraceKind kind,
                        std::uint64_t step, const TraceNotes& notes) {
  for (const OpTime& time : timeline.ops) {
    POLYPHONY_CHECK(time.op.value < program.ops.size(), "op " << time.op.value);
  }
  return Writer(program, timeline, notes).write(kind, step);
}

}  // namespace polyphony::traces
