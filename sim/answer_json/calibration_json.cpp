#include "shared/hardware/hardware_json.h"
#include "sim/answer_json/answer_schema.h"
#include "sim/answer_json/answers_json.h"

namespace polyphony::sim {
namespace {

using nlohmann::json;

const JsonKeys<traces::FittedParameter>& parameter_keys() {
  using Of = traces::FittedParameter;
  static const JsonKeys<Of> keys{
      {"name", a("string"), "its key in the profile", [](const Of& of) { return of.name; }},
      {"prior", a("number"), "seconds, or a ratio", [](const Of& of) { return of.prior; }},
      {"value", a("number"), "fitted", [](const Of& of) { return of.value; }},
      {"standard_error", a("number"), "of the fit", [](const Of& of) { return of.standard_error; }},
      {"rows", a("integer"), "activities that it was fitted on",
       [](const Of& of) { return of.rows; }},
      {"informed", a("boolean"), "false: nothing measured depends on it, it kept its prior",
       [](const Of& of) { return of.informed; }}};
  return keys;
}

const JsonKeys<traces::RunError>& run_keys() {
  using Of = traces::RunError;
  static const JsonKeys<Of> keys{
      {"run", a("string"), "its folder or trace files", [](const Of& of) { return of.label; }},
      {"measured_seconds", a("number"), "of a step",
       [](const Of& of) { return of.measured.count(); }},
      {"before", a("number"), "error of the prior's prediction",
       [](const Of& of) { return of.before; }},
      {"after", a("number"), "error of the fitted profile's",
       [](const Of& of) { return of.after; }},
      {"repeatability", a("number"), "half the interquartile range, relative",
       [](const Of& of) { return of.repeatability; }},
      {"shared_cores", shared_cores_schema(), "ranks that did not have their core to themselves",
       [](const Of& of) { return shared_cores_json(of.shared_cores); }},
      {"jitter_repeatability", or_null(a("number")), "as the fitted jitter predicts it",
       [](const Of& of) {
         return of.jitter_repeatability ? json(*of.jitter_repeatability) : json();
       }}};
  return keys;
}

const JsonKeys<traces::Calibration>& calibration_keys() {
  using Of = traces::Calibration;
  static const JsonKeys<Of> keys{
      {"parameters", list_of(schema_of(parameter_keys(), "one parameter")), "fitted to runs",
       [](const Of& of) { return array_of(parameter_keys(), of.parameters); }},
      {"runs", list_of(schema_of(run_keys(), "one run")), "that it was fitted to",
       [](const Of& of) { return array_of(run_keys(), of.runs); }},
      {"step_error", a("number"), "half of a step's 90 % interval, relative",
       [](const Of& of) { return of.profile.step_error; }},
      {"profile", a("object"), "the fitted profile, as its file",
       [](const Of& of) { return json::parse(polyphony::to_json(of.profile)); }}};
  return keys;
}

}  // namespace

json to_json(const traces::Calibration& fitted) { return object_of(calibration_keys(), fitted); }

json run_calibration_schema() {
  json schema = schema_of(calibration_keys(), "what runs say of a profile");
  schema["properties"]["unseen"] = list_of(a("number"));
  schema["properties"]["unseen"]["description"] = "by run: error of a fit to the others";
  return schema;
}

}  // namespace polyphony::sim
