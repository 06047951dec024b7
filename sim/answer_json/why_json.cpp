#include "sim/answer_json/answer_schema.h"
#include "sim/answer_json/answers_json.h"

namespace polyphony::sim {
namespace {

using nlohmann::json;

// By traces::Idle.
constexpr const char* kIdleKeys[traces::kIdles] = {
    "stage_messages", "bridge_messages", "sharded_parameters", "gradient_sums", "host_copies",
    "imbalance",      "bubble"};

json times_json(const std::vector<traces::PartTimes>& parts, const traces::PartTimes& times,
                const traces::IdleTimes& idle) {
  json result, idles;
  for (const traces::Part part : traces::parts_shown(parts))
    result[traces::name(part)] = times[static_cast<std::size_t>(part)].count();
  for (std::size_t i = 0; i < traces::kIdles; ++i) idles[kIdleKeys[i]] = idle[i].count();
  result["idle_for"] = idles;
  return result;
}

// Schema of an object of parts by name. Parts that the step does not have are omitted.
json times_schema() {
  json idles = {{"type", "object"},
                {"properties", json::object()},
                {"required", std::vector<std::string>(std::begin(kIdleKeys), std::end(kIdleKeys))},
                {"additionalProperties", false}};
  for (const char* key : kIdleKeys) idles["properties"][key] = a("number");
  return {{"type", "object"},
          {"properties", {{"idle_for", idles}}},
          {"required", {"idle_for"}},
          {"additionalProperties", a("number")}};
}

const JsonKeys<StepAnswer>& memory_keys() {
  using Of = StepAnswer;
  static const JsonKeys<Of> keys{
      {"stage", a("string"), "pipeline stage of the rank with the largest peak",
       [](const Of& of) { return of.figures.worst_stage; }},
      {"rank", a("integer"), "rank with the largest peak",
       [](const Of& of) { return of.figures.worst_rank.value; }},
      {"peak_bytes", a("integer"), "peak memory of that rank",
       [](const Of& of) { return of.figures.peak_memory.value; }},
      {"at_peak_bytes", map_of(a("integer")), "memory at the peak, by kind of buffer",
       [](const Of& of) {
         json at_peak;
         for (std::size_t kind = 0; kind < kBufferKinds; ++kind)
           if (static_cast<BufferKind>(kind) != BufferKind::host)
             at_peak[name(static_cast<BufferKind>(kind))] =
                 of.prediction.memory[of.figures.worst_rank.value].at_peak[kind].value;
         return at_peak;
       }},
      {"host_bytes", a("integer"), "its offloaded activations in host memory",
       [](const Of& of) { return of.prediction.memory[of.figures.worst_rank.value].host.value; }},
      {"device_bytes", a("integer"), "memory of the device; 0: unknown",
       [](const Of& of) { return of.figures.device_memory.value; }},
      {"fits", a("boolean"), "whether the peak fits in the device's memory",
       [](const Of& of) { return of.figures.fits(); }}};
  return keys;
}

struct Tried {
  const WorthTrying& change;
  const Model& model;
};
const JsonKeys<Tried>& tried_keys() {
  using Of = Tried;
  static const JsonKeys<Of> keys{
      {"changes", list_of(a("string")), "what is changed, in words",
       [](const Of& of) { return of.change.words; }},
      {"layout", a("string"), "the changed layout in words",
       [](const Of& of) { return describe(of.model, of.change.layout); }},
      {"estimate_seconds", a("number"), "estimated step time of the changed layout, in seconds",
       [](const Of& of) { return of.change.step.count(); }},
      {"gain", a("number"), "relative reduction of the step time: (now - then) / now",
       [](const Of& of) { return of.change.gain; }},
      {"certainty", a("number"), "probability that the step becomes faster",
       [](const Of& of) { return of.change.certainty; }},
      {"peak_memory_bytes", a("integer"), "peak memory of the worst rank",
       [](const Of& of) { return of.change.peak_memory.value; }},
      {"settings", list_of(a("string")),
       "the change in the settings of the framework that --for names",
       [](const Of& of) {
         return of.change.settings.empty() ? std::optional<json>()
                                           : std::optional<json>(of.change.settings);
       },
       false}};
  return keys;
}

struct Why {
  const WhyAnswer& answer;
  const Model& model;
};
const JsonKeys<Why>& why_keys() {
  using Of = Why;
  static const JsonKeys<Of> keys{
      {"layout", a("string"), "the layout in words",
       [](const Of& of) { return of.answer.now.layout; }},
      {"profile", a("string"), "name of the hardware profile",
       [](const Of& of) { return of.answer.now.profile.name; }},
      {"stack", a("string"), "software",
       [](const Of& of) { return of.answer.now.profile.stack.name; }},
      {"predictor", a("string"), "simulate or estimate",
       [](const Of& of) { return of.answer.now.prediction.simulated ? "simulate" : "estimate"; }},
      {"step_seconds", a("number"), "predicted step time in seconds",
       [](const Of& of) { return of.answer.now.figures.step.count(); }},
      {"critical_rank", a("integer"), "rank that idles least",
       [](const Of& of) { return of.answer.now.busiest.value; }},
      {"critical_rank_seconds", times_schema(), "seconds of that rank, by part of the step",
       [](const Of& of) {
         const StepAnswer& now = of.answer.now;
         return times_json(now.parts, now.parts[now.busiest.value],
                           of.answer.idle[now.busiest.value]);
       }},
      {"mean_seconds", times_schema(), "seconds by part of the step, mean over ranks",
       [](const Of& of) {
         const StepAnswer& now = of.answer.now;
         return times_json(now.parts, traces::mean(now.parts), traces::mean(of.answer.idle));
       }},
      {"backward_recomputes", a("boolean"), "whether backward passes include recomputation",
       [](const Of& of) { return of.answer.now.recomputes; }},
      {"memory", schema_of(memory_keys(), "peak memory"),
       "memory of the rank with the largest peak",
       [](const Of& of) { return object_of(memory_keys(), of.answer.now); }},
      {"estimate_seconds", or_null(a("number")),
       "estimated step time in seconds, for comparison with the changes; null: none was tried",
       [](const Of& of) {
         return of.answer.estimate.count() > 0 ? json(of.answer.estimate.count()) : json();
       }},
      {"worth_trying", list_of(schema_of(tried_keys(), "a change")),
       "changes worth trying, best first",
       [](const Of& of) {
         return array_of(tried_keys(), of.answer.worth_trying,
                         [&](const WorthTrying& change) { return Tried{change, of.model}; });
       }},
      {"looked_at", a("integer"), "number of changes evaluated",
       [](const Of& of) { return of.answer.looked_at; }},
      {"fitting", a("integer"), "number of changes that fit in memory",
       [](const Of& of) { return of.answer.fitting; }},
      {"unanswered", a("integer"), "number of changes that could not be predicted",
       [](const Of& of) { return of.answer.unanswered; }},
      {"notes", list_of(a("string")), "remarks on the answer",
       [](const Of& of) { return of.answer.notes; }},
      {"out_of_memory", a("string"), "what the layout needs; only if it does not fit in memory",
       [](const Of& of) {
         const std::string& text = of.answer.now.out_of_memory;
         return text.empty() ? std::optional<json>() : std::optional<json>(text);
       },
       false}};
  return keys;
}

}  // namespace

json to_json(const WhyAnswer& answer, const Model& model) {
  return object_of(why_keys(), Why{answer, model});
}

std::string why_schema() {
  json root = schema_of(why_keys(), "where the time of a step goes");
  root["properties"].update(schema_of(what_if_keys(), "")["properties"]);  // with --set
  return schema_document("polyphony why --format json", root, json::object());
}

}  // namespace polyphony::sim
