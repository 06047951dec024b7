#include "shared/scenario_io/scenario_json.h"
#include "sim/answer_json/answer_schema.h"
#include "sim/answer_json/answers_json.h"
#include "sim/text/json_keys.h"

namespace polyphony::sim {
namespace {

using nlohmann::json;

const JsonKeys<SegmentRow>& row_keys() {
  using Of = SegmentRow;
  static const JsonKeys<Of> keys{
      {"module", a("string"), "its name", [](const Of& r) { return r.module; }},
      {"items", a("integer"), "of a sub-microbatch; 0: the module takes microbatches",
       [](const Of& r) { return r.items; }},
      {"parts", a("integer"), "sub-microbatches of the fullest microbatch",
       [](const Of& r) { return r.parts; }},
      {"segments", a("integer"), "sweeps over the pipeline's ranks",
       [](const Of& r) { return r.segments; }},
      {"seconds", a("number"), "forward and backward of one of these",
       [](const Of& r) { return r.latency.count(); }},
      {"rate_share", a("number"), "items a second at that size, of the best size's",
       [](const Of& r) { return r.rate_share; }}};
  return keys;
}

const JsonKeys<SegmentsAnswer>& segments_keys() {
  using Of = SegmentsAnswer;
  static const JsonKeys<Of> keys{
      {"modules", list_of(schema_of(row_keys(), "a module")), "in the model's order",
       [](const Of& s) { return array_of(row_keys(), s.rows); }},
      {"layout", a("string"), "in words",
       [](const Of& s) { return describe(s.scenario->model, s.layout); }},
      {"layout_form", reference_to("layout"), "as a scenario's /layout says it",
       [](const Of& s) { return json::parse(resolved_text(s.layout, s.scenario->model)); }},
      {"step_seconds", a("number"), "estimated", [](const Of& s) { return s.step.count(); }},
      {"memory_bytes", a("integer"), "of its worst rank",
       [](const Of& s) { return s.memory.value; }},
      {"given_step_seconds", a("number"), "of the scenario's own layout, estimated",
       [](const Of& s) { return s.given_step.count(); }},
      {"given_memory_bytes", a("integer"), "of its worst rank",
       [](const Of& s) { return s.given_memory.value; }}};
  return keys;
}

}  // namespace

json to_json(const SegmentsAnswer& answer) { return object_of(segments_keys(), answer); }

std::string segments_schema() {
  return schema_document("polyphony plan --segments --format json",
                         schema_of(segments_keys(), "modules cut for planner dip"),
                         layout_definitions());
}

}  // namespace polyphony::sim
