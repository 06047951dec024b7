#include "sim/answer_json/answer_schema.h"
#include "sim/answer_json/answers_json.h"

namespace polyphony::sim {
namespace {

using nlohmann::json;

const JsonKeys<Unchanged>& unchanged_keys() {
  using Of = Unchanged;
  static const JsonKeys<Of> keys{
      {"step_seconds", a("number"), "step time of the scenario as written, in seconds",
       [](const Of& of) { return of.figures->step.count(); }},
      {"tokens_per_second_per_rank", a("number"), "language tokens per second and rank",
       [](const Of& of) { return of.figures->tokens_per_second_per_rank; }},
      {"mfu", a("number"), "model FLOPs utilization, a fraction",
       [](const Of& of) { return of.figures->model_flops_utilization; }},
      {"peak_memory_bytes", a("integer"), "peak memory of the worst rank",
       [](const Of& of) { return of.figures->peak_memory.value; }},
      {"fits", a("boolean"), "whether it fits in the device's memory",
       [](const Of& of) { return of.figures->fits(); }},
      {"layout", a("string"), "the best layout; only for a sweep",
       [](const Of& of) {
         return of.layout.empty() ? std::optional<json>() : std::optional<json>(of.layout);
       },
       false}};
  return keys;
}

const JsonKeys<Unchanged>& no_answer_keys() {
  static const JsonKeys<Unchanged> keys{{"no_answer", a("string"),
                                         "why the scenario as written has no answer",
                                         [](const Unchanged& of) { return of.why_not; }}};
  return keys;
}

}  // namespace

const JsonKeys<WhatIf>& what_if_keys() {
  using Of = WhatIf;
  static const JsonKeys<Of> keys{
      {"set", list_of(a("string")), "the changes made by --set",
       [](const Of& of) { return of.set; }},
      {"unchanged",
       {{"anyOf",
         {schema_of(unchanged_keys(), "its answer"),
          schema_of(no_answer_keys(), "there is no answer")}}},
       "answer for the scenario as written, without --set",
       [](const Of& of) {
         return of.unchanged.figures ? object_of(unchanged_keys(), of.unchanged)
                                     : object_of(no_answer_keys(), of.unchanged);
       }},
      {"step_change", a("number"),
       "relative change of the step time: (step - unchanged) / unchanged",
       [](const Of& of) {
         return of.unchanged.figures
                    ? std::optional<json>(of.changed.step / of.unchanged.figures->step - 1)
                    : std::optional<json>();
       },
       false}};
  return keys;
}

json to_json(const WhatIf& what_if) { return object_of(what_if_keys(), what_if); }

}  // namespace polyphony::sim
