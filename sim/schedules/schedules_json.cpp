#include "sim/schedules/schedules_json.h"
#include "sim/answer_json/answer_schema.h"
#include "sim/text/json_keys.h"

namespace polyphony::sim {
namespace {

using nlohmann::json;
using Row = ComparedSchedule;

// A key that exists only if the schedule can run.
JsonKey<Row> if_legal(const char* key, json schema, const char* about,
                      std::function<json(const Row&)> value) {
  return {key, std::move(schema), about,
          [value = std::move(value)](const Row& of) {
            return of.refusal.empty() ? std::optional<json>(value(of)) : std::optional<json>();
          },
          false};
}

const JsonKeys<Row>& row_keys() {
  static const JsonKeys<Row> keys{
      {"schedule", a("string"), "its name", [](const Row& of) { return of.name; }},
      {"refusal", a("string"), "why no setting can run; if present, the other keys are absent",
       [](const Row& of) {
         return of.refusal.empty() ? std::optional<json>() : std::optional<json>(of.refusal);
       },
       false},
      if_legal("setting", a("string"), "the best setting of the schedule",
               [](const Row& of) { return json(of.setting); }),
      if_legal("makespan_seconds", a("number"), "time of the step",
               [](const Row& of) { return json(of.table.makespan.count()); }),
      if_legal("bound_seconds", a("number"), "lower bound for any order of these stages",
               [](const Row& of) { return json(of.bound.count()); }),
      if_legal("bubbles", list_of(a("number")), "idle share of the step, by rank",
               [](const Row& of) { return json(bubbles(of.table)); }),
      if_legal("peak_activation_bytes", list_of(a("integer")), "saved activations, by rank",
               [](const Row& of) {
                 std::vector<std::int64_t> peaks;
                 for (const Bytes peak : of.table.peak) peaks.push_back(peak.value);
                 return json(peaks);
               }),
      if_legal("fits", a("boolean"), "whether it fits in the given memory",
               [](const Row& of) { return json(of.fits); }),
      {"drawn_makespan_seconds", list_of(a("number")),
       "times of steps with randomly drawn microbatches, ascending",
       [](const Row& of) {
         std::vector<double> drawn;
         for (const Seconds makespan : of.drawn) drawn.push_back(makespan.count());
         return drawn.empty() || !of.refusal.empty() ? std::optional<json>()
                                                     : std::optional<json>(drawn);
       },
       false}};
  return keys;
}

const JsonKeys<ScheduleComparison>& comparison_keys() {
  using Of = ScheduleComparison;
  static const JsonKeys<Of> keys{
      {"bound_seconds", a("number"), "lower bound for any stages and any order",
       [](const Of& of) { return of.bound.count(); }},
      {"schedules", list_of(schema_of(row_keys(), "a schedule at its best setting")),
       "those that fit first, fastest first; refused ones last",
       [](const Of& of) { return array_of(row_keys(), of.rows); }}};
  return keys;
}

}  // namespace

json to_json(const ScheduleComparison& comparison) {
  return object_of(comparison_keys(), comparison);
}

json to_json(const OrderedStep& step) {
  json ranks = json::array();
  for (const OrderedRank& rank : step.ranks)
    ranks.push_back({{"stages", rank.stages},
                     {"actions", rank.actions},
                     {"tapes_in_flight", rank.tapes},
                     {"peak_memory_bytes", rank.peak.value}});
  return {{"layout", step.layout},
          {"verified", true},
          {"step_seconds", step.figures.step.count()},
          {"bubble_actions", step.bubble},
          {"peak_memory_bytes", step.figures.peak_memory.value},
          {"pipeline_ranks", ranks}};
}

std::string schedule_times_schema() {
  return schema_document("polyphony schedules --times --format json",
                         schema_of(comparison_keys(), "comparison of schedules"), json::object());
}

}  // namespace polyphony::sim
