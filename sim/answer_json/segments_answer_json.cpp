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
      {"module", a("string"), "name of the module", [](const Of& r) { return r.module; }},
      {"items", a("integer"),
       "items per sub-microbatch; 0: the module processes whole microbatches",
       [](const Of& r) { return r.items; }},
      {"parts", a("integer"), "number of sub-microbatches of the fullest microbatch",
       [](const Of& r) { return r.parts; }},
      {"segments", a("integer"), "number of segments: passes over the ranks of the pipeline",
       [](const Of& r) { return r.segments; }},
      {"seconds", a("number"),
       "seconds of the forward and backward pass of one sub-microbatch through the module",
       [](const Of& r) { return r.latency.count(); }},
      {"rate_share", a("number"),
       "items per second at that size / items per second at the best size",
       [](const Of& r) { return r.rate_share; }}};
  return keys;
}

const JsonKeys<SegmentsAnswer>& segments_keys() {
  using Of = SegmentsAnswer;
  static const JsonKeys<Of> keys{
      {"modules", list_of(schema_of(row_keys(), "a module")),
       "one entry per module, in the order of the model",
       [](const Of& s) { return array_of(row_keys(), s.rows); }},
      {"layout", a("string"), "the resulting layout in words",
       [](const Of& s) { return describe(s.scenario->model, s.layout); }},
      {"layout_form", reference_to("layout"), "the layout in the form of a scenario's /layout",
       [](const Of& s) { return json(json_value(s.layout, s.scenario->model)); }},
      {"step_seconds", a("number"), "estimated step time in seconds",
       [](const Of& s) { return s.step.count(); }},
      {"memory_bytes", a("integer"), "peak memory of the worst rank",
       [](const Of& s) { return s.memory.value; }},
      {"given_step_seconds", a("number"),
       "estimated step time of the scenario's own layout, in seconds",
       [](const Of& s) { return s.given_step.count(); }},
      {"given_memory_bytes", a("integer"), "peak memory of its worst rank",
       [](const Of& s) { return s.given_memory.value; }}};
  return keys;
}

}  // namespace

json to_json(const SegmentsAnswer& answer) { return object_of(segments_keys(), answer); }

std::string segments_schema() {
  return schema_document(
      "polyphony plan --segments --format json",
      schema_of(segments_keys(), "division of modules and microbatches for planner dip"),
      layout_definitions());
}

}  // namespace polyphony::sim
