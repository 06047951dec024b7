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
    return JsonKey<Of>{key, or_null(a("number")),
                       "percentile of the step time in seconds; null: too few steps were drawn",
                       [quantile](const Of& of) {
                         return reaches(of.steps.size(), quantile)
                                    ? json(traces::quantile(of.steps, quantile).count())
                                    : json();
                       }};
  };
  static const JsonKeys<Of> keys{
      {"steps", a("integer"), "number of steps drawn",
       [](const Of& of) { return of.steps.size(); }},
      {"predictor", a("string"), "how these steps were predicted: simulate or estimate",
       [](const Of& of) { return of.simulated ? "simulate" : "estimate"; }},
      reached("p50_seconds", 0.5),
      reached("p95_seconds", 0.95),
      reached("p99_seconds", 0.99),
      {"largest_seconds", a("number"), "the largest step time drawn, in seconds",
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
      {"parameters", map_of(a("number")),
       "the parameters of the profile that change together, with their relative change",
       [](const Of& of) { return json(of.parameters); }},
      {"effect", a("number"), "change of the natural logarithm of the step time",
       [](const Of& of) { return of.effect; }}};
  return keys;
}

const JsonKeys<Extrapolation>& extrapolation_keys() {
  using Of = Extrapolation;
  static const JsonKeys<Of> keys{
      {"what", a("string"), "a kind of work outside the ranges that the profile was fitted to",
       [](const Of& of) { return of.what; }},
      {"share", a("number"), "fraction of that kind of work that is outside",
       [](const Of& of) { return of.share; }},
      {"count", a("integer"), "number of such ops or messages",
       [](const Of& of) { return of.count; }}};
  return keys;
}

const JsonKeys<StepAnswer>& chance_keys() {
  using Of = StepAnswer;
  static const JsonKeys<Of> keys{
      {"interval90_seconds", low_and_high(), "90 % interval of the step time, in seconds",
       [](const Of& of) {
         const SecondsInterval bounds = interval(of.belief);
         return json{bounds.low.count(), bounds.high.count()};
       }},
      {"deviation", a("number"), "standard deviation of the natural logarithm of the step time",
       [](const Of& of) { return of.belief.deviation(); }},
      {"parameter_deviation", a("number"),
       "part of the deviation that is due to errors of the profile's parameters",
       [](const Of& of) { return of.belief.parameters(); }},
      {"residual_deviation", a("number"),
       "part of the deviation that is due to what is not modeled",
       [](const Of& of) { return of.belief.residual; }},
      {"footing", a("string"),
       "calibration basis: whether the profile was fitted to measurements of this stack and device",
       [](const Of& of) { return name(of.profile.certainty.footing); }},
      {"freedom", a("integer"),
       "degrees of freedom of Student's t distribution, whose scale is the deviation; 0: normal",
       [](const Of& of) { return of.profile.certainty.freedom; }},
      {"errors", list_of(schema_of(effect_keys(), "one error")), "errors that the profile states",
       [](const Of& of) {
         std::vector<ParameterEffect> rows;
         for (std::size_t k = 0; k < of.belief.effects.size(); ++k)
           rows.push_back({of.profile.certainty.errors[k], of.belief.effects[k]});
         return array_of(effect_keys(), rows);
       }},
      {"extrapolated", list_of(schema_of(extrapolation_keys(), "work outside the fitted ranges")),
       "work for which the profile extrapolates",
       [](const Of& of) { return array_of(extrapolation_keys(), of.extrapolated); }},
      {"mfu", a("number"), "model FLOPs utilization, a fraction; 0: unknown",
       [](const Of& of) { return of.figures.model_flops_utilization; }},
      {"megatron_mfu", a("number"), "MFU as Megatron-LM would compute it, a fraction; 0: unknown",
       [](const Of& of) { return of.megatron_mfu; }},
      {"megatron_tflops_per_gpu", a("number"),
       "as Megatron-LM before core 0.12 prints it: all of the attention matrix; 0: not known",
       [](const Of& of) { return of.megatron_full.value / 1e12; }},
      {"megatron_core_0_12_tflops_per_gpu", a("number"),
       "as Megatron-LM from core 0.12 on prints it: half of causal attention; 0: not known",
       [](const Of& of) { return of.megatron_half.value / 1e12; }},
      {"torchtitan_mfu", a("number"), "MFU as torchtitan would compute it, a fraction; 0: unknown",
       [](const Of& of) { return of.torchtitan_mfu; }},
      {"other_software", a("string"),
       "the profile's software, if the scenario names another stack; else empty",
       [](const Of& of) { return of.other_software; }},
      {"jitter_known", a("boolean"),
       "whether the profile has a model of jitter (variation between steps)",
       [](const Of& of) { return of.profile.certainty.jitter.has_value(); }},
      {"jitter", schema_of(jitter_keys(), "steps with random jitter"),
       "step times with random jitter; only with --jitter",
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
      known("dollars_per_step", "dollars per step; null: the price is unknown",
            [](const Of& of) { return of.dollars_per_step; }),
      known("dollars_per_million_tokens", "dollars per million tokens; null: the price is unknown",
            [](const Of& of) { return of.dollars_per_million_tokens; }),
      known("kwh_per_step", "kilowatt-hours of all devices per step; null: the power is unknown",
            [](const Of& of) { return of.kilowatt_hours(); }),
      known("kwh_per_million_tokens",
            "kilowatt-hours of all devices per million tokens; null: the power is unknown",
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
      {"layout", a("string"), "the layout in words", [](const Of& of) { return of.layout; }},
      {"profile", a("string"), "name of the hardware profile",
       [](const Of& of) { return of.profile.name; }},
      {"stack", a("string"), "name of the software stack",
       [](const Of& of) { return of.profile.stack.name; }},
      {"predictor", a("string"), "how the step was predicted: simulate or estimate",
       [](const Of& of) { return of.prediction.simulated ? "simulate" : "estimate"; }},
      {"folded", a("boolean"),
       "whether only representative ranks were predicted, each for all that do the same",
       [](const Of& of) { return of.prediction.folded; }},
      {"step_seconds", a("number"), "predicted step time in seconds",
       [](const Of& of) { return of.figures.step.count(); }},
      {"estimate_seconds", a("number"),
       "step time in seconds without contention, a lower bound of the simulation",
       [](const Of& of) { return of.prediction.estimate.step().count(); }},
      {"stated_error", a("number"),
       "relative error of step times that the profile states: half of a 90 % interval",
       [](const Of& of) { return of.profile.step_error; }},
      {"chance", schema_of(chance_keys(), "uncertainty"), "uncertainty of the step time",
       [](const Of& of) { return object_of(chance_keys(), of); }},
      {"tokens_per_second_per_rank", a("number"), "language tokens per second and rank",
       [](const Of& of) { return of.figures.tokens_per_second_per_rank; }},
      {"mfu", a("number"), "model FLOPs utilization, a fraction; 0: unknown",
       [](const Of& of) { return of.figures.model_flops_utilization; }},
      {"peak_memory_bytes", a("integer"), "peak memory of the worst rank",
       [](const Of& of) { return of.figures.peak_memory.value; }},
      {"library_memory_bytes", a("integer"),
       "memory of that rank's GPU that libraries take besides tensors: CUDA context, NCCL, cuBLAS; "
       "0: not a GPU, or another framework's",
       [](const Of& of) { return of.figures.library_memory.value; }},
      {"worst_stage", a("string"), "pipeline stage of the rank that needs most memory",
       [](const Of& of) { return of.figures.worst_stage; }},
      {"host_memory_bytes", a("integer"),
       "offloaded activations in host memory, the most of any rank",
       [](const Of& of) {
         Bytes host{};
         for (const RankMemory& rank : of.prediction.memory) host = std::max(host, rank.host);
         return host.value;
       }},
      {"memory_of", a("string"), "the software whose rules give which activations a layer saves",
       [](const Of& of) { return name(of.profile.stack.memory.keeping); }},
      {"fits", a("boolean"), "whether it fits in the device's memory",
       [](const Of& of) { return of.figures.fits(); }},
      {"busiest_rank", a("integer"), "rank that idles least",
       [](const Of& of) { return of.busiest.value; }},
      {"busiest_rank_seconds", map_of(a("number")), "seconds of that rank, by part of the step",
       parts_json},
      {"backward_recomputes", a("boolean"), "whether backward passes include recomputation",
       [](const Of& of) { return of.recomputes; }},
      {"notes", list_of(a("string")), "remarks on the answer",
       [](const Of& of) { return of.notes; }},
      {"out_of_memory", a("string"),
       "what the layout needs and what would fit; only if it does not fit in memory",
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
  json root = schema_of(step_keys(), "the prediction of one training step");
  const json spent = schema_of(spent_keys(), "");
  root["properties"].update(spent["properties"]);
  for (const json& key : spent["required"]) root["required"].push_back(key);
  root["properties"].update(schema_of(what_if_keys(), "")["properties"]);  // with --set
  return schema_document("polyphony simulate --format json", root, json::object());
}

}  // namespace polyphony::sim
