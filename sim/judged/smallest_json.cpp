#include "sim/answer_json/answer_schema.h"
#include "sim/judged/validation_json.h"
#include "sim/text/json_keys.h"

namespace polyphony::sim {
namespace {

using nlohmann::json;

const JsonKeys<SmallestSide>& side_keys() {
  using Of = SmallestSide;
  static const JsonKeys<Of> keys{
      {"mean", a("number"), "mean absolute error, a natural logarithm",
       [](const Of& of) { return of.mean; }},
      {"median", a("number"), "median absolute error, a natural logarithm",
       [](const Of& of) { return of.median; }},
      {"inside90", a("number"), "fraction of 90 % intervals that contain the measurement",
       [](const Of& of) { return of.inside; }},
      {"half_width90", a("number"), "mean half width of the 90 % intervals, a natural logarithm",
       [](const Of& of) { return of.half_width; }}};
  return keys;
}

const JsonKeys<SmallestFit>& fit_keys() {
  using Of = SmallestFit;
  static const json side = schema_of(side_keys(), "errors of the rows predicted");
  static const JsonKeys<Of> keys{
      {"footing", a("string"),
       "calibration basis: whether the fit included measurements of the stack and the device",
       [](const Of& of) { return name(of.footing); }},
      {"block", a("string"), "block of published rows; all: every block",
       [](const Of& of) { return of.block.empty() ? std::string("all") : of.block; }},
      {"families", a("integer"), "number of families of rows",
       [](const Of& of) { return of.families; }},
      {"evidence", a("integer"), "number of step times used as evidence, one at a time",
       [](const Of& of) { return of.evidence; }},
      {"outliers", a("integer"), "number of these rejected as outliers, which change nothing",
       [](const Of& of) { return of.outliers; }},
      {"rows", a("number"),
       "number of predicted rows; each counts once, for all its evidence together",
       [](const Of& of) { return of.rows; }},
      {"before", side, "errors without the step time",
       [](const Of& of) { return object_of(side_keys(), of.before); }},
      {"after", side, "errors with the step time",
       [](const Of& of) { return object_of(side_keys(), of.after); }}};
  return keys;
}

const JsonKeys<std::vector<SmallestFit>>& smallest_keys() {
  using Of = std::vector<SmallestFit>;
  static const JsonKeys<Of> keys{
      {"fit_smallest",
       list_of(schema_of(fit_keys(), "families of a block with one calibration basis")),
       "by calibration basis and block, then by calibration basis",
       [](const Of& of) { return array_of(fit_keys(), of); }}};
  return keys;
}

}  // namespace

json to_json(const std::vector<SmallestFit>& fits) { return object_of(smallest_keys(), fits); }

std::string smallest_schema() {
  return schema_document(
      "polyphony validate --fit-smallest --format json",
      schema_of(smallest_keys(), "improvement by calibration with one step time"), json::object());
}

}  // namespace polyphony::sim
