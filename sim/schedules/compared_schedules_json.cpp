#include "sim/answer_json/answer_schema.h"
#include "sim/schedules/compared_schedules.h"
#include "sim/text/json_keys.h"

namespace polyphony::sim {
namespace {

using nlohmann::json;
using Row = ComparedSchedule;

// Of a schedule that is not refused.
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
      {"refusal", a("string"), "why it cannot be; then nothing else is said",
       [](const Row& of) {
         return of.refusal.empty() ? std::optional<json>() : std::optional<json>(of.refusal);
       },
       false},
      if_legal("setting", a("string"), "its best", [](const Row& of) { return json(of.setting); }),
      if_legal("makespan_seconds", a("number"), "of the step",
               [](const Row& of) { return json(of.table.makespan.count()); }),
      if_legal("bound_seconds", a("number"), "no order of its stages is quicker",
               [](const Row& of) { return json(of.bound.count()); }),
      if_legal("bubbles", list_of(a("number")), "share of the step, by rank",
               [](const Row& of) { return json(bubbles(of.table)); }),
      if_legal("peak_activation_bytes", list_of(a("integer")), "by rank",
               [](const Row& of) {
                 std::vector<std::int64_t> peaks;
                 for (const Bytes peak : of.table.peak) peaks.push_back(peak.value);
                 return json(peaks);
               }),
      if_legal("fits", a("boolean"), "in the memory that was given",
               [](const Row& of) { return json(of.fits); }),
      {"drawn_makespan_seconds", list_of(a("number")), "of steps with drawn times",
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
      {"bound_seconds", a("number"), "no order of any schedule's stages is quicker",
       [](const Of& of) { return of.bound.count(); }},
      {"schedules", list_of(schema_of(row_keys(), "a schedule at its best")),
       "those that fit first, the quickest first; refused ones last",
       [](const Of& of) { return array_of(row_keys(), of.rows); }}};
  return keys;
}

}  // namespace

std::string comparison_json(const ScheduleComparison& comparison) {
  return object_of(comparison_keys(), comparison).dump(2);
}

std::string schedule_times_schema() {
  return schema_document("polyphony schedules --times --format json",
                         schema_of(comparison_keys(), "schedules side by side"), json::object());
}

}  // namespace polyphony::sim
