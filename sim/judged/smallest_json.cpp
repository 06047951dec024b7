#include "sim/answer_json/answer_schema.h"
#include "sim/judged/validation_json.h"
#include "sim/text/json_keys.h"

namespace polyphony::sim {
namespace {

using nlohmann::json;

const JsonKeys<SmallestSide>& side_keys() {
  using Of = SmallestSide;
  static const JsonKeys<Of> keys{
      {"mean", a("number"), "error", [](const Of& of) { return of.mean; }},
      {"median", a("number"), "error", [](const Of& of) { return of.median; }},
      {"inside90", a("number"), "share of 90 % intervals that hold what was measured",
       [](const Of& of) { return of.inside; }},
      {"half_width90", a("number"), "of the 90 % intervals, mean",
       [](const Of& of) { return of.half_width; }}};
  return keys;
}

const JsonKeys<SmallestFit>& fit_keys() {
  using Of = SmallestFit;
  static const json side = schema_of(side_keys(), "errors of the rows predicted");
  static const JsonKeys<Of> keys{
      {"footing", a("string"), "what the fit had seen of the stack and the device",
       [](const Of& of) { return name(of.footing); }},
      {"block", a("string"), "of rows; all: of every block",
       [](const Of& of) { return of.block.empty() ? std::string("all") : of.block; }},
      {"families", a("integer"), "of rows", [](const Of& of) { return of.families; }},
      {"evidence", a("integer"), "step times given, one at a time",
       [](const Of& of) { return of.evidence; }},
      {"outliers", a("integer"), "of them, which move nothing",
       [](const Of& of) { return of.outliers; }},
      {"rows", a("number"), "predicted, each once, whatever evidence was given in turn",
       [](const Of& of) { return of.rows; }},
      {"before", side, "without the step time",
       [](const Of& of) { return object_of(side_keys(), of.before); }},
      {"after", side, "with it", [](const Of& of) { return object_of(side_keys(), of.after); }}};
  return keys;
}

const JsonKeys<std::vector<SmallestFit>>& smallest_keys() {
  using Of = std::vector<SmallestFit>;
  static const JsonKeys<Of> keys{
      {"fit_smallest", list_of(schema_of(fit_keys(), "a block's families on one footing")),
       "by footing and block, then by footing",
       [](const Of& of) { return array_of(fit_keys(), of); }}};
  return keys;
}

}  // namespace

json to_json(const std::vector<SmallestFit>& fits) { return object_of(smallest_keys(), fits); }

std::string smallest_schema() {
  return schema_document("polyphony validate --fit-smallest --format json",
                         schema_of(smallest_keys(), "what one step time corrects"), json::object());
}

}  // namespace polyphony::sim
