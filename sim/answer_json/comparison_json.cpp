#include "sim/answer_json/answer_schema.h"
#include "sim/answer_json/answers_json.h"

namespace polyphony::sim {
namespace {

using nlohmann::json;

const JsonKeys<traces::CoreShare>& core_keys() {
  using Of = traces::CoreShare;
  static const JsonKeys<Of> keys{
      {"rank", a("integer"), "rank that shared its CPU core with other processes",
       [](const Of& of) { return of.rank.value; }},
      {"recorded_over_processor", a("number"), "recorded time of its compute ops / processor time",
       [](const Of& of) { return of.ratio(); }}};
  return keys;
}

const JsonKeys<traces::PartComparison>& part_keys() {
  using Of = traces::PartComparison;
  static const JsonKeys<Of> keys{
      {"predicted_seconds", a("number"), "predicted seconds, mean over ranks",
       [](const Of& of) { return of.predicted.count(); }},
      {"measured_seconds", a("number"), "measured seconds, mean over ranks",
       [](const Of& of) { return of.measured.count(); }},
      {"share_error", a("number"), "(predicted - measured) / measured step time",
       [](const Of& of) { return of.share_error; }}};
  return keys;
}

struct Judged {
  const RunComparison& run;
  double bar = 0;
};
const JsonKeys<Judged>& judged_keys() {
  using Of = Judged;
  static const JsonKeys<Of> keys{
      {"run", a("string"), "folder or trace files of the run",
       [](const Of& of) { return of.run.source; }},
      {"layout", a("string"), "the layout in words", [](const Of& of) { return of.run.layout; }},
      {"profile", a("string"), "hardware profile used for the prediction",
       [](const Of& of) { return of.run.profile; }},
      {"stack", a("string"), "software stack used for the prediction",
       [](const Of& of) { return of.run.stack; }},
      {"predicted_seconds", a("number"), "predicted step time in seconds, median",
       [](const Of& of) { return of.run.comparison.predicted_step.count(); }},
      {"measured_seconds", a("number"), "measured step time in seconds, median",
       [](const Of& of) { return of.run.comparison.measured_step.median.count(); }},
      {"steps", a("integer"), "number of measured steps",
       [](const Of& of) { return of.run.comparison.measured_step.count; }},
      {"error", a("number"), "relative error of the step time: predicted / measured - 1",
       [](const Of& of) { return of.run.comparison.step_error; }},
      {"repeatability", a("number"),
       "half the interquartile range of step times with the same batch, relative to the median",
       [](const Of& of) { return of.run.comparison.repeatability(); }},
      {"bar", a("number"), "tolerance of the error, a fraction",
       [](const Of& of) { return of.bar; }},
      {"within", or_null(a("boolean")),
       "whether the error is within the bar or twice the repeatability; null: unknown, because "
       "repeated steps differ by more than the bar",
       [](const Of& of) {
         const traces::Verdict verdict = of.run.comparison.verdict(of.bar);
         return verdict == traces::Verdict::unknown ? json()
                                                    : json(verdict == traces::Verdict::within);
       }},
      {"shared_cores", shared_cores_schema(),
       "ranks that shared their CPU core with other processes",
       [](const Of& of) { return shared_cores_json(of.run.comparison.shared_cores); }},
      {"parts", map_of(schema_of(part_keys(), "a part of the step")), "parts of the step, by name",
       [](const Of& of) {
         json parts;
         for (const traces::PartComparison& part : of.run.comparison.average)
           parts[traces::name(part.part)] = object_of(part_keys(), part);
         return parts;
       }}};
  return keys;
}

}  // namespace

json shared_cores_json(const std::vector<traces::CoreShare>& shared) {
  return array_of(core_keys(), shared);
}
json shared_cores_schema() { return list_of(schema_of(core_keys(), "one such rank")); }

json to_json(const std::vector<RunComparison>& runs, double bar) {
  return array_of(judged_keys(), runs,
                  [bar](const RunComparison& run) { return Judged{run, bar}; });
}

std::string comparison_schema() {
  return schema_document("polyphony compare --format json",
                         list_of(schema_of(judged_keys(), "a run compared with its prediction")),
                         json::object());
}

}  // namespace polyphony::sim
