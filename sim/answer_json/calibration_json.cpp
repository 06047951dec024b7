#include "shared/hardware/hardware_json.h"
#include "sim/answer_json/answer_schema.h"
#include "sim/answer_json/answers_json.h"

namespace polyphony::sim {
namespace {

using nlohmann::json;

const JsonKeys<traces::FittedParameter>& parameter_keys() {
  using Of = traces::FittedParameter;
  static const JsonKeys<Of> keys{
      {"name", a("string"), "key of the parameter in the profile",
       [](const Of& of) { return of.name; }},
      {"prior", a("number"), "value before the fit: seconds or a ratio",
       [](const Of& of) { return of.prior; }},
      {"value", a("number"), "fitted value", [](const Of& of) { return of.value; }},
      {"standard_error", a("number"), "standard error of the fitted value",
       [](const Of& of) { return of.standard_error; }},
      {"rows", a("integer"), "number of measured activities that it was fitted to",
       [](const Of& of) { return of.rows; }},
      {"informed", a("boolean"), "false: no measurement depends on it, so it has its prior value",
       [](const Of& of) { return of.informed; }}};
  return keys;
}

const JsonKeys<traces::RunError>& run_error_keys() {
  using Of = traces::RunError;
  static const JsonKeys<Of> keys{
      {"run", a("string"), "folder or trace files of the run",
       [](const Of& of) { return of.label; }},
      {"measured_seconds", a("number"), "measured step time in seconds",
       [](const Of& of) { return of.measured.count(); }},
      {"before", a("number"), "relative error of the step time predicted before the fit",
       [](const Of& of) { return of.before; }},
      {"after", a("number"), "relative error of the step time predicted with the fitted profile",
       [](const Of& of) { return of.after; }},
      {"repeatability", a("number"),
       "half the interquartile range of measured step times, relative to the median",
       [](const Of& of) { return of.repeatability; }},
      {"shared_cores", shared_cores_schema(),
       "ranks that shared their CPU core with other processes",
       [](const Of& of) { return shared_cores_json(of.shared_cores); }},
      {"jitter_repeatability", or_null(a("number")),
       "repeatability predicted by the fitted jitter; null: no jitter was fitted",
       [](const Of& of) {
         return of.jitter_repeatability ? json(*of.jitter_repeatability) : json();
       }}};
  return keys;
}

const JsonKeys<traces::Calibration>& calibration_keys() {
  using Of = traces::Calibration;
  static const JsonKeys<Of> keys{
      {"parameters", list_of(schema_of(parameter_keys(), "one parameter")),
       "parameters fitted to the runs",
       [](const Of& of) { return array_of(parameter_keys(), of.parameters); }},
      {"runs", list_of(schema_of(run_error_keys(), "one run")),
       "runs that the profile was fitted to",
       [](const Of& of) { return array_of(run_error_keys(), of.runs); }},
      {"step_error", a("number"), "relative error of step times: half of a 90 % interval",
       [](const Of& of) { return of.profile.step_error; }},
      {"profile", a("object"), "the fitted profile, in the form of a profile file",
       [](const Of& of) { return json(json_value(of.profile)); }}};
  return keys;
}

}  // namespace

json to_json(const traces::Calibration& fitted) { return object_of(calibration_keys(), fitted); }

json run_calibration_schema() {
  json schema = schema_of(calibration_keys(), "a profile fitted to runs");
  schema["properties"]["unseen"] = list_of(a("number"));
  schema["properties"]["unseen"]["description"] =
      "for each run, the error of a fit to the other runs";
  return schema;
}

}  // namespace polyphony::sim
