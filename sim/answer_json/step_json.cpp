#include "shared/hardware/software.h"
#include "sim/answer_json/answer_schema.h"
#include "sim/answer_json/answers_json.h"
#include "traces/compare/spread.h"

namespace polyphony::sim {
namespace {

using nlohmann::json;

const JsonKeys<JitteredSteps>& jitter_keys() {
  using Of = JitteredSteps;
  const auto reached = [](const char* key, double quantile) {
    return JsonKey<Of>{key, or_null(a("number")), "null: too few steps for it",
                       [quantile](const Of& of) {
                         return reaches(of.steps.size(), quantile)
                                    ? json(traces::quantile(of.steps, quantile).count())
                                    : json();
                       }};
  };
  static const JsonKeys<Of> keys{
      {"steps", a("integer"), "drawn", [](const Of& of) { return of.steps.size(); }},
      {"predictor", a("string"), "simulate or estimate",
       [](const Of& of) { return of.simulated ? "simulate" : "estimate"; }},
      reached("p50_seconds", 0.5),
      reached("p95_seconds", 0.95),
      reached("p99_seconds", 0.99),
      {"largest_seconds", a("number"), "of the steps drawn",
       [](const Of& of) { return of.steps.back().count(); }}};
  return keys;
}

struct ParameterEffect {
  ParameterError parameters;
  double effect = 0;
};
const JsonKeys<ParameterEffect>& effect_keys() {
  using Of = ParameterEffect;
  static const JsonKeys<Of> keys{
      {"parameters", map_of(a("number")), "relative change of those that move together",
       [](const Of& of) { return json(of.parameters); }},
      {"effect", a("number"), "on the logarithm of the step",
       [](const Of& of) { return of.effect; }}};
  return keys;
}

const JsonKeys<Extrapolation>& extrapolation_keys() {
  using Of = Extrapolation;
  static const JsonKeys<Of> keys{
      {"what", a("string"), "lies outside what the profile was fitted on",
       [](const Of& of) { return of.what; }},
      {"share", a("number"), "of such work", [](const Of& of) { return of.share; }},
      {"count", a("integer"), "of such things", [](const Of& of) { return of.count; }}};
  return keys;
}

const JsonKeys<StepAnswer>& chance_keys() {
  using Of = StepAnswer;
  static const JsonKeys<Of> keys{
      {"interval90_seconds", low_and_high(), "9 of 10 such runs have their step there",
       [](const Of& of) {
         const SecondsInterval bounds = interval(of.belief);
         return json{bounds.low.count(), bounds.high.count()};
       }},
      {"deviation", a("number"), "of the step's logarithm",
       [](const Of& of) { return of.belief.deviation(); }},
      {"parameter_deviation", a("number"), "that part of it which is the parameters'",
       [](const Of& of) { return of.belief.parameters(); }},
      {"residual_deviation", a("number"), "what the model leaves out",
       [](const Of& of) { return of.belief.residual; }},
      {"footing", a("string"), "what the profile knows of the stack and the device",
       [](const Of& of) { return name(of.profile.certainty.footing); }},
      {"freedom", a("integer"), "of Student's t, whose scale deviations are; 0: normal",
       [](const Of& of) { return of.profile.certainty.freedom; }},
      {"errors", list_of(schema_of(effect_keys(), "one error")), "that the profile states",
       [](const Of& of) {
         std::vector<ParameterEffect> rows;
         for (std::size_t k = 0; k < of.belief.effects.size(); ++k)
           rows.push_back({of.profile.certainty.errors[k], of.belief.effects[k]});
         return array_of(effect_keys(), rows);
       }},
      {"extrapolated", list_of(schema_of(extrapolation_keys(), "work outside the known")),
       "what the profile was not fitted on",
       [](const Of& of) { return array_of(extrapolation_keys(), of.extrapolated); }},
      {"mfu", a("number"), "model FLOPs utilization; 0: not known",
       [](const Of& of) { return of.figures.model_flops_utilization; }},
      {"megatron_mfu", a("number"), "as Megatron-LM would print it",
       [](const Of& of) { return of.megatron_mfu; }},
      {"megatron_tflops_per_gpu", a("number"),
       "as Megatron-LM before core 0.12 prints it: all of the attention matrix; 0: not known",
       [](const Of& of) { return of.megatron_full.value / 1e12; }},
      {"megatron_core_0_12_tflops_per_gpu", a("number"),
       "as Megatron-LM from core 0.12 on prints it: half of causal attention; 0: not known",
       [](const Of& of) { return of.megatron_half.value / 1e12; }},
      {"torchtitan_mfu", a("number"), "as torchtitan would print it",
       [](const Of& of) { return of.torchtitan_mfu; }},
      {"other_software", a("string"), "the profile's, where the scenario names another stack",
       [](const Of& of) { return of.other_software; }},
      {"jitter_known", a("boolean"), "whether the profile knows how steps spread",
       [](const Of& of) { return of.profile.certainty.jitter.has_value(); }},
      {"jitter", schema_of(jitter_keys(), "steps on other days"), "with --jitter",
       [](const Of& of) {
         return of.jittered ? std::optional<json>(object_of(jitter_keys(), *of.jittered))
                            : std::optional<json>();
       },
       false}};
  return keys;
}

const JsonKeys<Figures>& spent_keys() {
  using Of = Figures;
  const auto known = [](const char* key, const char* about, double (*value)(const Of&)) {
    return JsonKey<Of>{key, or_null(a("number")), about,
                       [value](const Of& of) { return value(of) > 0 ? json(value(of)) : json(); }};
  };
  static const JsonKeys<Of> keys{
      known("dollars_per_step", "null: no price is known",
            [](const Of& of) { return of.dollars_per_step; }),
      known("dollars_per_million_tokens", "null: no price is known",
            [](const Of& of) { return of.dollars_per_million_tokens; }),
      known("kwh_per_step", "of the devices; null: not known",
            [](const Of& of) { return of.kilowatt_hours(); }),
      known("kwh_per_million_tokens", "of the devices; null: not known",
            [](const Of& of) { return of.kilowatt_hours_per_million_tokens(); })};
  return keys;
}

json parts_json(const StepAnswer& answer) {
  json parts;
  for (const traces::Part part : traces::parts_shown(answer.parts))
    parts[traces::name(part)] =
        answer.parts[answer.busiest.value][static_cast<std::size_t>(part)].count();
  return parts;
}

const JsonKeys<StepAnswer>& step_keys() {
  using Of = StepAnswer;
  static const JsonKeys<Of> keys{
      {"layout", a("string"), "in words", [](const Of& of) { return of.layout; }},
      {"profile", a("string"), "its name", [](const Of& of) { return of.profile.name; }},
      {"stack", a("string"), "software that it is of",
       [](const Of& of) { return of.profile.stack.name; }},
      {"predictor", a("string"), "simulate or estimate",
       [](const Of& of) { return of.prediction.simulated ? "simulate" : "estimate"; }},
      {"folded", a("boolean"), "whether ranks stand for others that do the same",
       [](const Of& of) { return of.prediction.folded; }},
      {"step_seconds", a("number"), "predicted",
       [](const Of& of) { return of.figures.step.count(); }},
      {"estimate_seconds", a("number"), "without contention: no less than this",
       [](const Of& of) { return of.prediction.estimate.step().count(); }},
      {"stated_error", a("number"), "half of a step's 90 % interval, as the profile states it",
       [](const Of& of) { return of.profile.step_error; }},
      {"chance", schema_of(chance_keys(), "how sure it is"), "of the step",
       [](const Of& of) { return object_of(chance_keys(), of); }},
      {"tokens_per_second_per_rank", a("number"), "language tokens",
       [](const Of& of) { return of.figures.tokens_per_second_per_rank; }},
      {"mfu", a("number"), "model FLOPs utilization; 0: not known",
       [](const Of& of) { return of.figures.model_flops_utilization; }},
      {"peak_memory_bytes", a("integer"), "of the worst rank",
       [](const Of& of) { return of.figures.peak_memory.value; }},
      {"worst_stage", a("string"), "that rank's",
       [](const Of& of) { return of.figures.worst_stage; }},
      {"host_memory_bytes", a("integer"), "waiting in the host's memory, of a rank at most",
       [](const Of& of) {
         Bytes host{};
         for (const RankMemory& rank : of.prediction.memory) host = std::max(host, rank.host);
         return host.value;
       }},
      {"memory_of", a("string"), "whose way to keep what a layer saves",
       [](const Of& of) { return name(of.profile.stack.memory.keeping); }},
      {"fits", a("boolean"), "in the device's memory",
       [](const Of& of) { return of.figures.fits(); }},
      {"busiest_rank", a("integer"), "whose compute idles least",
       [](const Of& of) { return of.busiest.value; }},
      {"busiest_rank_seconds", map_of(a("number")), "of it, by part of the step", parts_json},
      {"backward_recomputes", a("boolean"), "backwards hold recomputation",
       [](const Of& of) { return of.recomputes; }},
      {"notes", list_of(a("string")), "to the reader", [](const Of& of) { return of.notes; }},
      {"out_of_memory", a("string"), "what it needs and what would fit; only where it does not fit",
       [](const Of& of) {
         return of.out_of_memory.empty() ? std::optional<json>()
                                         : std::optional<json>(of.out_of_memory);
       },
       false}};
  return keys;
}

}  // namespace

json spent_json(const Figures& figures) { return object_of(spent_keys(), figures); }

json to_json(const StepAnswer& answer) {
  json result = object_of(step_keys(), answer);
  result.update(spent_json(answer.figures));
  return result;
}

std::string step_schema() {
  json root = schema_of(step_keys(), "what a step takes");
  const json spent = schema_of(spent_keys(), "");
  root["properties"].update(spent["properties"]);
  for (const json& key : spent["required"]) root["required"].push_back(key);
  root["properties"].update(schema_of(what_if_keys(), "")["properties"]);  // with --set
  return schema_document("polyphony simulate --format json", root, json::object());
}

}  // namespace polyphony::sim
