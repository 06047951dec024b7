#include "sim/evidence/evidence_json.h"

#include "shared/hardware/hardware_json.h"
#include "sim/answer_json/answer_schema.h"
#include "sim/text/json_keys.h"

namespace polyphony::sim {
namespace {

using nlohmann::json;

json bytes_or_null(const std::optional<Bytes>& bytes) {
  return bytes ? json(bytes->value) : json();
}

const JsonKeys<StepRow>& row_keys() {
  static const JsonKeys<StepRow> keys = {
      {"source", a("string"), "file, or as the evidence file calls it",
       [](const StepRow& r) { return json(r.source); }},
      {"measured_seconds", a("number"), "of a step; 0: no step time",
       [](const StepRow& r) { return json(r.measured.count()); }},
      {"before_seconds", a("number"), "predicted by the prior",
       [](const StepRow& r) { return json(r.before.count()); }},
      {"after_seconds", a("number"), "predicted by what was fitted",
       [](const StepRow& r) { return json(r.after.count()); }},
      {"unseen", a("number"), "ln(measured / predicted) of a fit that left it out",
       [](const StepRow& r) { return json(r.unseen); }},
      {"unseen_deviation", a("number"), "stated of that",
       [](const StepRow& r) { return json(r.unseen_deviation); }},
      {"outlier", a("boolean"), "further off than any stated error: not fitted",
       [](const StepRow& r) { return json(r.outlier); }},
      {"memory_bytes", or_null(a("integer")), "measured, most allocated",
       [](const StepRow& r) { return bytes_or_null(r.memory); }},
      {"reserved_bytes", or_null(a("integer")), "measured, most reserved",
       [](const StepRow& r) { return bytes_or_null(r.reserved); }},
      {"predicted_memory_bytes", a("integer"), "most allocated, predicted",
       [](const StepRow& r) { return json(r.predicted_memory.value); }}};
  return keys;
}

const JsonKeys<ParameterMove>& move_keys() {
  static const JsonKeys<ParameterMove> keys = {
      {"parameter", a("string"), "its key in the profile",
       [](const ParameterMove& p) { return json(p.key); }},
      {"prior", a("number"), "seconds, or a ratio",
       [](const ParameterMove& p) { return json(p.prior); }},
      {"prior_deviation", a("number"), "relative",
       [](const ParameterMove& p) { return json(p.prior_deviation); }},
      {"value", a("number"), "fitted", [](const ParameterMove& p) { return json(p.value); }},
      {"deviation", a("number"), "relative, that is left",
       [](const ParameterMove& p) { return json(p.deviation); }},
      {"moved", a("boolean"), "false: nothing measured depends on it, it kept its prior",
       [](const ParameterMove& p) { return json(p.moved); }}};
  return keys;
}

const JsonKeys<StepCalibration>& calibration_keys() {
  static const JsonKeys<StepCalibration> keys = {
      {"evidence", list_of(schema_of(row_keys(), "one run")), "step times and memory",
       [](const StepCalibration& c) { return array_of(row_keys(), c.rows); }},
      {"errors", list_of(schema_of(move_keys(), "one parameter")), "parameters with stated errors",
       [](const StepCalibration& c) { return array_of(move_keys(), c.parameters); }},
      {"freedom", a("integer"), "of Student's t, whose scale deviations are; 0: normal",
       [](const StepCalibration& c) { return json(c.freedom); }},
      {"step_error", a("number"), "half of a step's 90 % interval, relative",
       [](const StepCalibration& c) { return json(c.profile.step_error); }},
      {"profile", a("object"), "the fitted profile, as its file",
       [](const StepCalibration& c) { return json::parse(polyphony::to_json(c.profile)); }}};
  return keys;
}

const JsonKeys<CheckedStep>& checked_keys() {
  using Of = CheckedStep;
  static const JsonKeys<Of> keys = {
      {"source", a("string"), "file, or as the evidence file calls it",
       [](const Of& c) { return json(c.source); }},
      {"predicted_seconds", a("number"), "of a step",
       [](const Of& c) { return json(c.predicted.count()); }},
      {"interval90_seconds", low_and_high(), "9 of 10 such runs",
       [](const Of& c) { return json{c.low.count(), c.high.count()}; }},
      {"measured_seconds", a("number"), "of a step",
       [](const Of& c) { return json(c.measured.count()); }},
      {"inside90", a("boolean"), "the interval", [](const Of& c) { return json(c.inside); }},
      {"beyond_all", a("boolean"), "further off than 999 of 1000 such runs",
       [](const Of& c) { return json(c.beyond); }}};
  return keys;
}

const JsonKeys<ProfileCheck>& check_keys() {
  using Of = ProfileCheck;
  static const JsonKeys<Of> keys = {
      {"evidence", list_of(schema_of(checked_keys(), "one step time")), "in the order given",
       [](const Of& c) { return array_of(checked_keys(), c.steps); }},
      {"implausible", list_of(a("string")), "numbers far from shipped profiles'",
       [](const Of& c) { return json(c.implausible); }}};
  return keys;
}

}  // namespace

json to_json(const StepCalibration& fitted) { return object_of(calibration_keys(), fitted); }

std::string calibration_schema() {
  // Of both kinds of evidence the answer has the keys of both.
  const json steps = schema_of(calibration_keys(), "what step times say of a profile"),
             runs = run_calibration_schema();
  json both = steps;
  both["description"] = "what runs and step times say of a profile";
  both["properties"].update(runs["properties"]);
  for (const json& key : runs["required"]) both["required"].push_back(key);
  return schema_document("polyphony calibrate --format json", {{"anyOf", {steps, runs, both}}},
                         json::object());
}

json to_json(const ProfileCheck& check) { return object_of(check_keys(), check); }

std::string check_schema() {
  return schema_document("polyphony profile check --format json",
                         schema_of(check_keys(), "a profile held against measurements"),
                         json::object());
}

}  // namespace polyphony::sim
