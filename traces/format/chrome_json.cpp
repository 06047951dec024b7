#include "traces/format/chrome_json.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <set>

#include "shared/error.h"
#include "shared/graph/memory_curves.h"
#include "traces/format/op_args.h"

namespace polyphony::traces {
namespace {

std::int64_t nanoseconds(Seconds time) { return std::llround(time.count() * 1e9); }

class Writer {
 public:
  Writer(const Program& program, const Timeline& timeline, const TraceNotes& notes)
      : program_(program), timeline_(timeline), notes_(notes) {}

  std::string write(TraceKind kind, std::uint64_t step) {
    constexpr std::size_t kOpBytes = 520, kFlowBytes = 130;  // measured sizes of one event
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
    if (ranks.size() == 1) write_step(step, *ranks.begin());
    for (const OpTime& time : timeline_.ops) write_op(time);
    if (ranks.size() == 1) write_launches(*ranks.begin());
    write_memory({ranks.begin(), ranks.end()});
    write_flows();
    if (text_.ends_with(",\n")) text_.drop(2);
    text_ << "\n]\n}\n";
    return text_.take();
  }

 private:
  Rank rank_of(OpId op) const { return program_.rank_of(program_.ops[op.value]); }

  JsonText& where(StreamId stream) {
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
    text_ << "\"polyphony\": {\"format\": 2, \"kind\": \"" << name(kind) << "\", \"program\": \""
          << hash_text << "\", \"step\": " << step << ", \"ranks\": " << program_.ranks
          << (notes_.late_plan ? ", \"late_plan\": true" : "");
    if (notes_.clock)
      text_ << ", \"clock\": {\"offset_ns\": " << nanoseconds(notes_.clock->offset)
            << ", \"error_ns\": " << nanoseconds(notes_.clock->error)
            << ", \"drift_ppb\": " << std::llround(notes_.clock->drift * 1e9) << "}";
    if (notes_.recorded_in > Seconds(0))
      text_ << ", \"recorded_in_ns\": " << nanoseconds(notes_.recorded_in);
    text_ << ", \"ops\": " << timeline_.ops.size()
          << ", \"makespan_ns\": " << nanoseconds(timeline_.makespan) << "},\n"
          << "\"traceEvents\": [\n";
  }

  JsonText& begin_meta(std::string_view what) {
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
    const auto at = [&]() -> JsonText& {
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

  // Marks the step like torch.profiler. It is a nanosecond longer than its ops, so that an op of
  // zero length at its end is inside.
  void write_step(std::uint64_t step, Rank rank) {
    std::int64_t first = nanoseconds(timeline_.ops.front().start), last = first;
    for (const OpTime& time : timeline_.ops) {
      first = std::min(first, nanoseconds(time.start));
      last = std::max(last, nanoseconds(time.end));
    }
    const auto at = [&]() -> JsonText& {
      return text_ << "\"pid\": " << rank.value + 1 << ", \"tid\": "
                   << 2 * program_.ranks + 1 + program_.streams.size() + rank.value;
    };
    begin_meta("thread_name");
    at() << ", \"args\": {\"name\": \"step\"}},\n";
    text_ << "{\"ph\": \"X\", \"name\": \"ProfilerStep#" << step << "\", \"cat\": \""
          << kStepCategory << "\", ";
    at() << ", \"ts\": ";
    text_.microseconds(first) << ", \"dur\": ";
    text_.microseconds(last + 1 - first) << ", \"args\": {}},\n";
  }

  void write_op(const OpTime& time) {
    const Op& op = program_.ops[time.op.value];
    const std::int64_t start = nanoseconds(time.start);
    text_ << "{\"ph\": \"X\", \"name\": ";
    text_.quoted(event_name(program_, time.op)) << ", \"cat\": \"" << event_category(op) << "\", ";
    where(op.stream) << ", \"ts\": ";
    text_.microseconds(start) << ", \"dur\": ";
    text_.microseconds(nanoseconds(time.end) - start);
    if (time.processor.count() >= 0) {
      text_ << ", \"tdur\": ";
      text_.microseconds(nanoseconds(time.processor));
    }
    // Stream numbers start at 1, because some readers treat 0 as no stream. The correlation
    // connects the op to its launch event.
    text_ << ", \"args\": {\"op\": " << time.op.value << ", \"stream\": " << op.stream.value + 1
          << ", \"correlation\": " << time.op.value + 1;
    write_args(program_, op, text_);
    text_ << "}},\n";
  }

  // HolisticTraceAnalysis assigns a kernel to the step of its launch, found by correlation. We
  // write a launch at the start of the op.
  void write_launches(Rank rank) {
    const auto at = [&]() -> JsonText& {
      return text_ << "\"pid\": " << rank.value + 1 << ", \"tid\": "
                   << 3 * program_.ranks + 1 + program_.streams.size() + rank.value;
    };
    begin_meta("thread_name");
    at() << ", \"args\": {\"name\": \"launches\"}},\n";
    for (const OpTime& time : timeline_.ops) {
      text_ << "{\"ph\": \"X\", \"name\": \"launch\", \"cat\": \"" << kLaunchCategory << "\", ";
      at() << ", \"ts\": ";
      text_.microseconds(nanoseconds(time.start))
          << ", \"dur\": 0.000, \"args\": {\"correlation\": " << time.op.value + 1 << "}},\n";
    }
  }

  // Written from the start of the first op.
  void write_memory(const std::vector<Rank>& ranks) {
    if (timeline_.ops.empty()) return;
    std::vector<Seconds> first(program_.ranks, Seconds::max());
    for (const OpTime& time : timeline_.ops) {
      Seconds& of_rank = first[rank_of(time.op).value];
      of_rank = std::min(of_rank, time.start);
    }
    const std::vector<MemoryCurve> curves = memory_curves(program_, timeline_, ranks);
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      const auto write = [&](const char* counter, const MemoryCurve::Points& points) {
        for (const auto& [time, bytes] : points) {
          text_ << "{\"ph\": \"C\", \"name\": \"" << counter
                << "\", \"pid\": " << ranks[i].value + 1 << ", \"ts\": ";
          text_.microseconds(nanoseconds(std::max(time, first[ranks[i].value])))
              << ", \"args\": {\"bytes\": " << bytes.value << "}},\n";
        }
      };
      write("memory", curves[i].device);
      write("memory of the host", curves[i].host);
    }
  }

  // A flow starts at the start of the send, and ends in the receive when both have started (but
  // inside its slice).
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
  JsonText text_;
};

}  // namespace

std::string write_trace(const Program& program, const Timeline& timeline, TraceKind kind,
                        std::uint64_t step, const TraceNotes& notes) {
  for (const OpTime& time : timeline.ops) {
    POLYPHONY_CHECK(time.op.value < program.ops.size(), "op " << time.op.value);
  }
  return Writer(program, timeline, notes).write(kind, step);
}

}  // namespace polyphony::traces
