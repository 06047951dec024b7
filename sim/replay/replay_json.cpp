#include "sim/replay/replay_json.h"

#include "sim/answer_json/answer_schema.h"
#include "sim/text/json_keys.h"

namespace polyphony::sim {
namespace {

using nlohmann::json;

const JsonKeys<PathStretch>& stretch_keys() {
  using Of = PathStretch;
  static const JsonKeys<Of> keys{
      {"class", a("string"), "class of the ops", [](const Of& of) { return of.label; }},
      {"rank", a("integer"), "rank that runs the ops", [](const Of& of) { return of.rank.value; }},
      {"start_seconds", a("number"), "from the step's start",
       [](const Of& of) { return of.start.count(); }},
      {"end_seconds", a("number"), "from the step's start",
       [](const Of& of) { return of.end.count(); }},
      {"ops", a("integer"), "number of consecutive ops", [](const Of& of) { return of.ops; }}};
  return keys;
}

using Mixed = traces::Mixture::value_type;

const JsonKeys<Mixed>& mixture_keys() {
  using Of = Mixed;
  const auto key = [](traces::Origin origin, const char* about) {
    return JsonKey<Of>{
        std::string(traces::name(origin)) + "_seconds", a("number"), about,
        [origin](const Of& of) { return of.second[static_cast<std::size_t>(origin)].count(); }};
  };
  static const JsonKeys<Of> keys{
      {"class", a("string"), "class of ops", [](const Of& of) { return of.first; }},
      key(traces::Origin::measured, "of ops that keep their measured times"),
      key(traces::Origin::scaled, "of ops with measured times scaled by the cost model"),
      key(traces::Origin::modelled,
          "of ops without a measurement, priced by the cost model and corrected by its error on "
          "their kind")};
  return keys;
}

const JsonKeys<PathDifference>& difference_keys() {
  using Of = PathDifference;
  static const JsonKeys<Of> keys{
      {"class", a("string"), "class of ops", [](const Of& of) { return of.label; }},
      {"before_seconds", a("number"), "on the critical path",
       [](const Of& of) { return of.before.count(); }},
      {"after_seconds", a("number"), "on the critical path",
       [](const Of& of) { return of.after.count(); }}};
  return keys;
}

json schema_of_map(const std::vector<std::string>& names) {
  json schema = {{"type", "object"},
                 {"properties", json::object()},
                 {"required", names},
                 {"additionalProperties", false}};
  for (const std::string& name : names) schema["properties"][name] = a("number");
  return schema;
}

std::vector<std::string> part_names() {
  std::vector<std::string> names;
  for (std::size_t p = 0; p < traces::kParts; ++p)
    names.emplace_back(traces::name(static_cast<traces::Part>(p)));
  return names;
}

const JsonKeys<ReplayedRun>& run_keys() {
  using Of = ReplayedRun;
  static const JsonKeys<Of> keys{
      {"layout", a("string"), "description of the layout", [](const Of& of) { return of.layout; }},
      {"step_seconds", a("number"), "median over the replayed steps",
       [](const Of& of) { return of.steps.median.count(); }},
      {"steps_seconds", low_and_high(), "10th and 90th percentile of the replayed steps",
       [](const Of& of) { return json{of.steps.p10.count(), of.steps.p90.count()}; }},
      {"parts_seconds", schema_of_map(part_names()), "of the step shown in detail, mean over ranks",
       [](const Of& of) {
         const traces::PartTimes mean = traces::mean(of.parts);
         json parts;
         for (std::size_t p = 0; p < traces::kParts; ++p) parts[part_names()[p]] = mean[p].count();
         return parts;
       }},
      {"peak_memory_bytes", a("integer"), "predicted, of the rank that needs most",
       [](const Of& of) { return of.peak_memory.value; }},
      {"critical_path", list_of(schema_of(stretch_keys(), "ops of one class on one rank")),
       "of the step shown in detail",
       [](const Of& of) { return array_of(stretch_keys(), of.path); }},
      {"times_from", list_of(schema_of(mixture_keys(), "durations of a class of ops")),
       "origin of the durations, by class of ops", [](const Of& of) {
         json rows = json::array();
         for (const Mixed& row : of.mixture) rows.push_back(object_of(mixture_keys(), row));
         return rows;
       }}};
  return keys;
}

std::optional<json> if_changed(const ReplayAnswer& of, const std::function<json()>& value) {
  if (!of.after) return {};
  return value();
}

const JsonKeys<ReplayAnswer>& answer_keys() {
  using Of = ReplayAnswer;
  static const JsonKeys<Of> keys{
      {"run", a("string"), "its folder or trace files", [](const Of& of) { return of.source; }},
      {"profile", a("string"), "profile that prices changes",
       [](const Of& of) { return of.profile; }},
      {"changes", list_of(a("string")), "the changes, as on the command line",
       [](const Of& of) { return of.said; }},
      {"steps", a("integer"), "number of measured steps",
       [](const Of& of) { return of.measured.count; }},
      {"measured_seconds", a("number"), "median of the measured steps",
       [](const Of& of) { return of.measured.median.count(); }},
      {"repeatability", a("number"),
       "half of the interquartile range of the measured steps, relative",
       [](const Of& of) { return of.measured.repeatability(); }},
      {"replay_error", a("number"), "(replayed unchanged - measured) / measured",
       [](const Of& of) { return of.replay_error; }},
      {"before", schema_of(run_keys(), "a replayed run"), "as it was measured",
       [](const Of& of) { return object_of(run_keys(), of.before); }},
      {"after", schema_of(run_keys(), "a replayed run"), "with the changes",
       [](const Of& of) {
         return if_changed(of, [&] { return object_of(run_keys(), *of.after); });
       },
       false},
      {"step_change", a("number"), "(after - before) / before",
       [](const Of& of) {
         return if_changed(
             of, [&] { return json(of.after->steps.median / of.before.steps.median - 1); });
       },
       false},
      {"interval80_seconds", low_and_high(), "80 % interval of the changed run's median step",
       [](const Of& of) {
         return if_changed(of, [&] {
           const SecondsInterval at = interval(of.belief, 0.8);
           return json{at.low.count(), at.high.count()};
         });
       },
       false},
      {"interval90_seconds", low_and_high(), "90 % interval of the changed run's median step",
       [](const Of& of) {
         return if_changed(of, [&] {
           const SecondsInterval at = interval(of.belief);
           return json{at.low.count(), at.high.count()};
         });
       },
       false},
      {"differences", list_of(schema_of(difference_keys(), "a class of ops")),
       "what explains the change: critical path seconds by class, the largest difference first",
       [](const Of& of) {
         return if_changed(of, [&] { return array_of(difference_keys(), of.differences); });
       },
       false},
      {"notes", list_of(a("string")), "notes for the user", [](const Of& of) { return of.notes; }}};
  return keys;
}

}  // namespace

json to_json(const std::vector<ReplayAnswer>& answers) { return array_of(answer_keys(), answers); }

std::string replay_schema() {
  return schema_document("polyphony replay --format json",
                         list_of(schema_of(answer_keys(), "a replay; with --vary one per value")),
                         json::object());
}

}  // namespace polyphony::sim
