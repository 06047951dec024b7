#include "sim/answer_json/answer_schema.h"
#include "sim/answer_json/answers_json.h"
#include "sim/text/json_keys.h"
#include "traces/kineto/summary.h"

namespace polyphony::sim {
namespace {

using namespace traces;
using nlohmann::json;

double seconds(Nanoseconds time) { return Seconds(time).count(); }
template <class Rate>
json or_nothing(const std::optional<Rate>& rate) {
  return rate ? json(rate->value) : json();
}

const JsonKeys<ClassTime>& class_keys() {
  using Of = ClassTime;
  static const JsonKeys<Of> keys{
      {"wall_seconds", a("number"),
       "seconds of the span counted for this class; each moment counts for one class only",
       [](const Of& c) { return seconds(c.wall); }},
      {"kernel_seconds", a("number"), "sum of the durations of its events, in seconds",
       [](const Of& c) { return seconds(c.kernels); }},
      {"count", a("integer"), "number of events", [](const Of& c) { return c.count; }}};
  return keys;
}

json classes_of(const DeviceTimes& times) {
  json object = json::object();
  for (std::size_t kind = 0; kind < times.classes.size(); ++kind)
    if (times.classes[kind].count > 0)
      object[name(static_cast<KernelClass>(kind))] = object_of(class_keys(), times.classes[kind]);
  return object;
}

const JsonKeys<DeviceTimes>& times_keys() {
  using Of = DeviceTimes;
  static const JsonKeys<Of> keys{
      {"span_seconds", a("number"),
       "seconds from the start of the first event to the end of the last",
       [](const Of& t) { return seconds(t.span); }},
      {"idle_seconds", a("number"), "seconds of the span in which nothing ran",
       [](const Of& t) { return seconds(t.idle); }},
      {"compute_seconds", a("number"), "seconds in which any compute kernel ran",
       [](const Of& t) { return seconds(t.of(DeviceWork::compute)); }},
      {"communication_seconds", a("number"), "seconds in which any collective or message ran",
       [](const Of& t) { return seconds(t.of(DeviceWork::communication)); }},
      {"memory_seconds", a("number"), "seconds in which any memory copy or fill ran",
       [](const Of& t) { return seconds(t.of(DeviceWork::memory)); }},
      {"overlapped_seconds", a("number"), "seconds of communication overlapped with computation",
       [](const Of& t) { return seconds(t.overlapped); }},
      {"classes", map_of(schema_of(class_keys(), "time of one class")),
       "by class of kernel; their wall_seconds and idle_seconds add up to the span", classes_of}};
  return keys;
}

struct StepOf {
  const DeviceTrace* trace;
  const StepTimes* step;
  const StepRange& range() const { return trace->steps[step->step]; }
};
const JsonKeys<StepOf>& traced_step_keys() {
  using Of = StepOf;
  static const JsonKeys<Of> keys{
      {"step", a("integer"), "number of the step", [](const Of& s) { return s.range().number; }},
      {"name", a("string"), "name of its annotation in the trace",
       [](const Of& s) { return s.range().name; }},
      {"host_seconds", a("number"), "duration of the annotation on the host, in seconds",
       [](const Of& s) { return seconds(s.range().duration); }},
      {"gap_seconds", or_null(a("number")),
       "seconds from its last event to the first of the next step; null: the last step",
       [](const Of& s) { return s.step->gap ? json(seconds(*s.step->gap)) : json(); }},
      {"device", schema_of(times_keys(), "a device's time"),
       "times of what was launched in the step",
       [](const Of& s) { return object_of(times_keys(), s.step->times); }}};
  return keys;
}

struct RankOf {
  const DeviceTrace* trace;
  const RankTimes* times;
  const ClockShift* clock;
};
const JsonKeys<RankOf>& rank_keys() {
  using Of = RankOf;
  static const JsonKeys<Of> keys{
      {"rank", or_null(a("integer")), "rank; null: the file does not state it",
       [](const Of& r) { return r.trace->rank ? json(*r.trace->rank) : json(); }},
      {"world", or_null(a("integer")),
       "number of ranks of the job; null: the file does not state it",
       [](const Of& r) { return r.trace->world ? json(*r.trace->world) : json(); }},
      {"file", a("string"), "trace file", [](const Of& r) { return r.trace->file; }},
      {"device_name", a("string"), "name of its GPU", [](const Of& r) { return r.trace->device; }},
      {"clock_seconds", a("number"), "seconds added to its clock to align it with the other ranks",
       [](const Of& r) { return seconds(r.clock->shift); }},
      {"events", map_of(a("integer")),
       "number of events in the file by category, including events on the host",
       [](const Of& r) { return json(r.trace->read); }},
      {"device", schema_of(times_keys(), "a device's time"), "times of all events of the device",
       [](const Of& r) { return object_of(times_keys(), r.times->whole); }},
      {"steps", list_of(schema_of(traced_step_keys(), "a step")),
       "steps in which anything was launched",
       [](const Of& r) {
         return array_of(traced_step_keys(), r.times->steps,
                         [&](const StepTimes& step) { return StepOf{r.trace, &step}; });
       }},
      {"notes", list_of(a("string")), "what was repaired in the file, and what is missing",
       [](const Of& r) { return json(r.trace->notes); }}};
  return keys;
}

const JsonKeys<CollectiveRow>& collective_keys() {
  using Of = CollectiveRow;
  static const JsonKeys<Of> keys{
      {"call", a("string"), "kind of collective: all_reduce, all_gather, …",
       [](const Of& c) { return name(c.shape.call); }},
      {"bytes", or_null(a("integer")), "bytes of the whole array; null: not recorded",
       [](const Of& c) { return or_nothing(c.shape.bytes); }},
      {"ranks", or_null(a("integer")), "number of ranks in its group; null: not recorded",
       [](const Of& c) { return c.shape.ranks > 0 ? json(c.shape.ranks) : json(); }},
      {"group", a("string"), "name and ranks of its group",
       [](const Of& c) { return c.shape.group; }},
      {"count", a("integer"), "number of calls on all ranks", [](const Of& c) { return c.count; }},
      {"seconds", a("number"), "sum of durations, in seconds",
       [](const Of& c) { return seconds(c.total); }},
      {"median_seconds", a("number"), "median duration, in seconds",
       [](const Of& c) { return seconds(c.median); }},
      {"shortest_seconds", a("number"), "shortest duration, in seconds",
       [](const Of& c) { return seconds(c.shortest); }},
      {"bytes_per_second", or_null(a("number")),
       "bytes per second at the median duration (algbw of nccl-tests)",
       [](const Of& c) { return or_nothing(c.algorithm); }},
      {"bus_bytes_per_second", or_null(a("number")),
       "bus bytes per second at the median duration (busbw of nccl-tests)",
       [](const Of& c) { return or_nothing(c.bus); }},
      {"best_bus_bytes_per_second", or_null(a("number")),
       "bus bytes per second at the shortest duration, which includes the least waiting",
       [](const Of& c) { return or_nothing(c.best_bus); }}};
  return keys;
}

const JsonKeys<ProductRow>& product_keys() {
  using Of = ProductRow;
  static const JsonKeys<Of> keys{
      {"batch", a("integer"), "number of products [m, k] x [k, n] in one call",
       [](const Of& p) { return p.product.batch; }},
      {"m", a("integer"), "rows of the first matrix", [](const Of& p) { return p.product.m; }},
      {"n", a("integer"), "columns of the second matrix", [](const Of& p) { return p.product.n; }},
      {"k", a("integer"), "columns of the first matrix, rows of the second",
       [](const Of& p) { return p.product.k; }},
      {"count", a("integer"), "number of calls", [](const Of& p) { return p.count; }},
      {"seconds", a("number"), "sum of durations, in seconds",
       [](const Of& p) { return seconds(p.total); }},
      {"flops_per_second", a("number"), "FLOPs of all / sum of durations",
       [](const Of& p) { return p.rate.value; }}};
  return keys;
}

const JsonKeys<KernelRow>& kernel_keys() {
  using Of = KernelRow;
  static const JsonKeys<Of> keys{
      {"name", a("string"), "name of the kernel", [](const Of& k) { return k.name; }},
      {"class", a("string"), "class of the kernel; unknown: its name is in no table",
       [](const Of& k) { return name(k.kind); }},
      {"count", a("integer"), "number of launches", [](const Of& k) { return k.count; }},
      {"seconds", a("number"), "sum of durations, in seconds",
       [](const Of& k) { return seconds(k.total); }}};
  return keys;
}

struct SlowOf {
  const RankSet* set;
  SlowRank slow;
};
const JsonKeys<SlowOf>& slow_keys() {
  using Of = SlowOf;
  static const JsonKeys<Of> keys{
      {"rank", a("integer"), "the slowest rank",
       [](const Of& s) { return json(*s.set->traces[s.slow.rank].rank); }},
      {"busy_seconds", a("number"), "seconds of computation and copies in its median step",
       [](const Of& s) { return seconds(s.slow.busy); }},
      {"median_seconds", a("number"), "seconds of computation and copies of the median rank",
       [](const Of& s) { return seconds(s.slow.median); }},
      {"last_in", a("integer"),
       "number of matched collectives in which the other ranks waited for it",
       [](const Of& s) { return s.set->last_in[s.slow.rank]; }},
      {"matched", a("integer"), "number of collectives that were matched across ranks",
       [](const Of& s) { return s.set->matched; }}};
  return keys;
}

const JsonKeys<RankSet>& trace_keys() {
  using Of = RankSet;
  static const JsonKeys<Of> keys{
      {"ranks", list_of(schema_of(rank_keys(), "a rank")), "one entry per rank",
       [](const Of& set) {
         json array = json::array();
         for (std::size_t i = 0; i < set.traces.size(); ++i)
           array.push_back(
               object_of(rank_keys(), RankOf{&set.traces[i], &set.times[i], &set.clocks[i]}));
         return array;
       }},
      {"collectives", list_of(schema_of(collective_keys(), "a collective")),
       "collectives by kind and size, largest total time first",
       [](const Of& set) { return array_of(collective_keys(), collective_rows(set)); }},
      {"products", list_of(schema_of(product_keys(), "GEMMs of one size")),
       "GEMMs with a recorded size, largest total time first",
       [](const Of& set) { return array_of(product_keys(), product_rows(set)); }},
      {"kernels", list_of(schema_of(kernel_keys(), "a kernel")),
       "kernels by name, largest total time first",
       [](const Of& set) { return array_of(kernel_keys(), kernel_rows(set)); }},
      {"slow_rank", or_null(schema_of(slow_keys(), "the rank that computes longest")),
       "the slowest rank; null: there is only one rank",
       [](const Of& set) {
         const auto slow = slow_rank(set);
         return slow ? object_of(slow_keys(), SlowOf{&set, *slow}) : json();
       }},
      {"notes", list_of(a("string")), "remarks on the answer",
       [](const Of& set) { return json(set.notes); }}};
  return keys;
}

}  // namespace

json to_json(const RankSet& ranks) { return object_of(trace_keys(), ranks); }

std::string trace_schema() {
  return schema_document("polyphony trace --format json",
                         schema_of(trace_keys(), "where the time of the recorded devices goes"),
                         json::object());
}

}  // namespace polyphony::sim
