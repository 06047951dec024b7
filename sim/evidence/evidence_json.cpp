#include "sim/evidence/evidence_json.h"

#include "shared/hardware/hardware_json.h"
#include "sim/answer_json/answer_schema.h"
#include "sim/answer_json/answers_json.h"
#include "sim/text/json_keys.h"

namespace polyphony::sim {
namespace {

using nlohmann::json;

json bytes_or_null(const std::optional<Bytes>& bytes) {
  return bytes ? json(bytes->value) : json();
}

const JsonKeys<StepRow>& row_keys() {
  static const JsonKeys<StepRow> keys = {
      {"source", a("string"), "file, or the name given in the evidence file",
       [](const StepRow& r) { return json(r.source); }},
      {"measured_seconds", a("number"), "measured step time; 0: not measured",
       [](const StepRow& r) { return json(r.measured.count()); }},
      {"before_seconds", a("number"), "step time predicted by the prior profile",
       [](const StepRow& r) { return json(r.before.count()); }},
      {"after_seconds", a("number"), "step time predicted by the fitted profile",
       [](const StepRow& r) { return json(r.after.count()); }},
      {"unseen", a("number"), "ln(measured / predicted) of a fit without this run",
       [](const StepRow& r) { return json(r.unseen); }},
      {"unseen_deviation", a("number"), "deviation stated for `unseen`",
       [](const StepRow& r) { return json(r.unseen_deviation); }},
      {"outlier", a("boolean"), "true: further off than any stated error, not used in the fit",
       [](const StepRow& r) { return json(r.outlier); }},
      {"memory_bytes", or_null(a("integer")), "measured peak of allocated memory",
       [](const StepRow& r) { return bytes_or_null(r.memory); }},
      {"reserved_bytes", or_null(a("integer")), "measured peak of reserved memory",
       [](const StepRow& r) { return bytes_or_null(r.reserved); }},
      {"predicted_memory_bytes", a("integer"), "predicted peak of allocated memory",
       [](const StepRow& r) { return json(r.predicted_memory.value); }}};
  return keys;
}

const JsonKeys<KernelFitRow>& kernel_keys() {
  using Of = KernelFitRow;
  static const JsonKeys<Of> keys = {
      {"source", a("string"), "the first profile, or the name given in the evidence file",
       [](const Of& r) { return json(r.source); }},
      {"kernels", a("string"), "the group of kernels", [](const Of& r) { return json(r.kernels); }},
      {"count", a("integer"), "number of these kernels in a step",
       [](const Of& r) { return json(r.count); }},
      {"measured_seconds", a("number"), "their time in a step, added up over the profiled ranks",
       [](const Of& r) { return json(r.measured.count()); }},
      {"before_seconds", a("number"), "the same as predicted by the prior profile",
       [](const Of& r) { return json(r.before.count()); }},
      {"after_seconds", a("number"), "the same as predicted by the fitted profile",
       [](const Of& r) { return json(r.after.count()); }},
      {"longest", a("string"), "name of the kernel with the most time",
       [](const Of& r) { return json(r.longest); }},
      {"longest_share", a("number"), "its share of the measured time",
       [](const Of& r) { return json(r.longest_share); }},
      {"outlier", a("boolean"), "true: further off than any stated error, not used in the fit",
       [](const Of& r) { return json(r.outlier); }}};
  return keys;
}

const JsonKeys<ParameterMove>& move_keys() {
  static const JsonKeys<ParameterMove> keys = {
      {"parameter", a("string"), "its key in the profile",
       [](const ParameterMove& p) { return json(p.key); }},
      {"prior", a("number"), "value before the fit: seconds, or a ratio",
       [](const ParameterMove& p) { return json(p.prior); }},
      {"prior_deviation", a("number"), "relative deviation before the fit",
       [](const ParameterMove& p) { return json(p.prior_deviation); }},
      {"value", a("number"), "fitted value", [](const ParameterMove& p) { return json(p.value); }},
      {"deviation", a("number"), "relative deviation after the fit",
       [](const ParameterMove& p) { return json(p.deviation); }},
      {"moved", a("boolean"), "false: no measurement depends on it and it kept its prior",
       [](const ParameterMove& p) { return json(p.moved); }}};
  return keys;
}

const JsonKeys<StepCalibration>& calibration_keys() {
  static const JsonKeys<StepCalibration> keys = {
      {"evidence", list_of(schema_of(row_keys(), "one run")), "step times and memory",
       [](const StepCalibration& c) { return array_of(row_keys(), c.rows); }},
      {"kernels", list_of(schema_of(kernel_keys(), "one group of kernels")),
       "kernels of profiles; empty without profiles",
       [](const StepCalibration& c) { return array_of(kernel_keys(), c.kernels); }},
      {"errors", list_of(schema_of(move_keys(), "one parameter")), "parameters with stated errors",
       [](const StepCalibration& c) { return array_of(move_keys(), c.parameters); }},
      {"freedom", a("integer"),
       "degrees of freedom of Student's t, whose scales the deviations are; 0: normal",
       [](const StepCalibration& c) { return json(c.freedom); }},
      {"step_error", a("number"), "half of a step's 90 % interval, relative",
       [](const StepCalibration& c) { return json(c.profile.step_error); }},
      {"profile", a("object"), "the fitted profile, as in its file",
       [](const StepCalibration& c) { return json(json_value(c.profile)); }}};
  return keys;
}

const JsonKeys<CheckedStep>& checked_keys() {
  using Of = CheckedStep;
  static const JsonKeys<Of> keys = {
      {"source", a("string"), "file, or the name given in the evidence file",
       [](const Of& c) { return json(c.source); }},
      {"predicted_seconds", a("number"), "predicted step time",
       [](const Of& c) { return json(c.predicted.count()); }},
      {"interval90_seconds", low_and_high(), "90 % interval of the prediction",
       [](const Of& c) { return json{c.low.count(), c.high.count()}; }},
      {"measured_seconds", a("number"), "measured step time",
       [](const Of& c) { return json(c.measured.count()); }},
      {"inside90", a("boolean"), "whether the measurement is inside the 90 % interval",
       [](const Of& c) { return json(c.inside); }},
      {"beyond_all", a("boolean"), "whether the measurement is outside the 99.9 % interval",
       [](const Of& c) { return json(c.beyond); }}};
  return keys;
}

const JsonKeys<ProfileCheck>& check_keys() {
  using Of = ProfileCheck;
  static const JsonKeys<Of> keys = {
      {"evidence", list_of(schema_of(checked_keys(), "one step time")), "in the order given",
       [](const Of& c) { return array_of(checked_keys(), c.steps); }},
      {"implausible", list_of(a("string")), "values far from those of shipped profiles",
       [](const Of& c) { return json(c.implausible); }}};
  return keys;
}

}  // namespace

json to_json(const StepCalibration& fitted) { return object_of(calibration_keys(), fitted); }

json to_json(const FittedProfile& fitted) {
  json whole = fitted.runs ? to_json(*fitted.runs) : json::object();
  if (!fitted.unseen.empty()) whole["unseen"] = fitted.unseen;
  if (fitted.steps) whole.update(to_json(*fitted.steps));
  return whole;
}

std::string calibration_schema() {
  // With both kinds of evidence the answer has the keys of both.
  const json steps = schema_of(calibration_keys(), "fit of a profile to step times"),
             runs = run_calibration_schema();
  json both = steps;
  both["description"] = "fit of a profile to runs and step times";
  both["properties"].update(runs["properties"]);
  for (const json& key : runs["required"]) both["required"].push_back(key);
  return schema_document("polyphony calibrate --format json", {{"anyOf", {steps, runs, both}}},
                         json::object());
}

json to_json(const ProfileCheck& check) { return object_of(check_keys(), check); }

std::string check_schema() {
  return schema_document("polyphony profile check --format json",
                         schema_of(check_keys(), "a profile checked against measurements"),
                         json::object());
}

}  // namespace polyphony::sim
