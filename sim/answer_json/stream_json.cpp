#include "shared/data/batch_json.h"
#include "shared/statistics.h"
#include "sim/answer_json/answer_schema.h"
#include "sim/answer_json/answers_json.h"
#include "sim/text/json_keys.h"

namespace polyphony::sim {
namespace {

using nlohmann::json;

json number(Seconds time) { return time.count(); }
json number(Bytes bytes) { return bytes.value; }
json number(double share) { return share; }

// Keys for quantiles of sorted values. `unit`: suffix of the keys, such as "_seconds".
template <class Value>
JsonKeys<std::vector<Value>> quantile_keys(const std::string& unit, const json& schema) {
  using Of = std::vector<Value>;
  JsonKeys<Of> keys;
  for (std::size_t i = 0; i < std::size(kStreamQuantiles); ++i)
    keys.push_back({kStreamQuantileNames[i] + unit, schema,
                    "quantile over batches; only if there are enough batches",
                    [q = kStreamQuantiles[i]](const Of& values) -> std::optional<json> {
                      if (!stream_reaches(values.size(), q)) return {};
                      return number(nearest_rank(values, q));
                    },
                    false});
  keys.push_back({"largest" + unit, schema, "largest value of all batches",
                  [](const Of& values) { return number(values.back()); }});
  return keys;
}

const JsonKeys<std::vector<Seconds>>& step_times_keys() {
  static const auto keys = quantile_keys<Seconds>("_seconds", a("number"));
  return keys;
}
const JsonKeys<std::vector<double>>& share_keys() {
  static const auto keys = quantile_keys<double>("", a("number"));
  return keys;
}

const JsonKeys<BatchStream>& bubble_keys() {
  using Of = BatchStream;
  const auto key = [](const char* name, const char* about, double Bubbles::* share) {
    return JsonKey<Of>{
        name, schema_of(share_keys(), "fractions of the step time"), about,
        [share](const Of& s) { return object_of(share_keys(), s.sorted_bubbles(share)); }};
  };
  static const JsonKeys<Of> keys{
      key("mean", "mean over ranks", &Bubbles::mean),
      key("worst_rank", "idle time of the rank that idles most", &Bubbles::worst),
      key("communication", "part of the mean spent waiting for messages and collectives",
          &Bubbles::communication)};
  return keys;
}

json stage_schema() {
  json schema = schema_of(quantile_keys<Bytes>("_bytes", a("integer")),
                          "peak memory of one stage, quantiles over batches");
  schema["properties"]["stage"] = {{"type", "string"}, {"description", "name of the stage"}};
  schema["required"].push_back("stage");
  return schema;
}
json stage_json(const BatchStream& stream, std::size_t stage) {
  json row = object_of(quantile_keys<Bytes>("_bytes", a("integer")), stream.sorted_peaks(stage));
  row["stage"] = stream.stages[stage];
  return row;
}

const JsonKeys<StreamSample>& sample_keys() {
  using Of = StreamSample;
  static const JsonKeys<Of> keys{
      {"id", a("integer"), "id of the sample", [](const Of& s) { return s.id; }},
      {"tokens", map_of(a("integer")), "number of tokens by modality",
       [](const Of& s) {
         json tokens;
         for (const auto& [modality, count] : s.tokens) tokens[name(modality)] = count;
         return tokens;
       }},
      {"held_bytes", a("integer"), "memory of the sample at the time of the peak",
       [](const Of& s) { return s.held.value; }}};
  return keys;
}

const JsonKeys<BatchStream>& worst_keys() {
  using Of = BatchStream;
  static const JsonKeys<Of> keys{
      {"batch", a("integer"), "number of the batch", [](const Of& s) { return s.worst().number; }},
      {"stage", a("string"), "pipeline stage with the peak",
       [](const Of& s) { return s.stages[s.worst().worst]; }},
      {"peak_bytes", a("integer"), "peak memory of the stage's worst rank",
       [](const Of& s) { return s.peak(s.worst()).value; }},
      {"samples", list_of(schema_of(sample_keys(), "a sample")),
       "the samples with the most memory at the peak",
       [](const Of& s) { return array_of(sample_keys(), s.worst().samples); }}};
  return keys;
}

struct Risk {
  MemoryRisk of;
  int steps = 0;
};
std::optional<json> maybe(const std::optional<double>& value) {
  return value ? std::optional<json>(*value) : std::nullopt;
}
const JsonKeys<Risk>& risk_keys() {
  using Of = Risk;
  static const JsonKeys<Of> keys{
      {"batches", a("integer"), "number of batches that do not fit in memory",
       [](const Of& r) { return r.of.exceeded; }},
      {"steps", a("integer"), "number of steps of the run", [](const Of& r) { return r.steps; }},
      {"per_step", a("number"), "probability per step: fraction of batches that do not fit",
       [](const Of& r) { return r.of.per_step; }},
      {"per_step_most", a("number"), "95 % upper bound of the probability per step",
       [](const Of& r) { return r.of.per_step_most; }},
      {"per_step_tail", a("number"),
       "probability per step by an exponential tail; absent: too few batches",
       [](const Of& r) { return maybe(r.of.per_step_tail); }, false},
      {"in_run", a("number"), "probability in the whole run, from per_step",
       [](const Of& r) { return r.of.in_run; }},
      {"in_run_most", a("number"), "probability in the whole run, from per_step_most",
       [](const Of& r) { return r.of.in_run_most; }},
      {"in_run_tail", a("number"), "probability in the whole run, from per_step_tail",
       [](const Of& r) { return maybe(r.of.in_run_tail); }, false}};
  return keys;
}

struct StreamOf {
  const BatchStream& stream;
  int steps;
};
const JsonKeys<StreamOf>& stream_keys() {
  using Of = StreamOf;
  static const JsonKeys<Of> keys{
      {"batches", a("integer"), "number of batches that were predicted",
       [](const Of& o) { return o.stream.batches.size(); }},
      {"profile", a("string"), "name of the hardware profile",
       [](const Of& o) { return o.stream.profile; }},
      {"stack", a("string"), "name of the software stack",
       [](const Of& o) { return o.stream.stack; }},
      {"predictor", a("string"), "how the batches were predicted: simulate or estimate",
       [](const Of& o) {
         return o.stream.predictor == Predictor::simulate ? "simulate" : "estimate";
       }},
      {"planner", a("string"), "planner that planned each batch; only if the layout has one",
       [](const Of& o) -> std::optional<json> {
         if (o.stream.planner.empty()) return {};
         return o.stream.planner;
       },
       false},
      {"step", schema_of(step_times_keys(), "seconds"), "step time, quantiles over batches",
       [](const Of& o) { return object_of(step_times_keys(), o.stream.sorted_steps()); }},
      {"batch_seconds", list_of(a("number")),
       "step time of each batch in seconds, in the order of batches",
       [](const Of& o) {
         json seconds = json::array();
         for (const StreamBatch& batch : o.stream.batches) seconds.push_back(batch.step.count());
         return seconds;
       }},
      {"bubbles", schema_of(bubble_keys(), "idle time"),
       "idle time of compute streams as a fraction of the step, quantiles over batches",
       [](const Of& o) { return object_of(bubble_keys(), o.stream); }},
      {"stages", list_of(stage_schema()), "peak memory by pipeline stage",
       [](const Of& o) {
         json stages = json::array();
         for (std::size_t stage = 0; stage < o.stream.stages.size(); ++stage)
           stages.push_back(stage_json(o.stream, stage));
         return stages;
       }},
      {"device_bytes", a("integer"), "memory of one device; 0: unknown",
       [](const Of& o) { return o.stream.device.value; }},
      {"worst", schema_of(worst_keys(), "the largest peak"),
       "the batch with the largest peak memory",
       [](const Of& o) { return object_of(worst_keys(), o.stream); }},
      {"largest_samples_peak_bytes", a("integer"),
       "of a data set: the peak of a batch of its largest samples",
       [](const Of& o) {
         return o.stream.largest_samples
                    ? std::optional<json>(o.stream.peak(*o.stream.largest_samples).value)
                    : std::optional<json>();
       },
       false},
      {"out_of_memory", schema_of(risk_keys(), "the risk"), "probability of running out of memory",
       [](const Of& o) {
         return object_of(risk_keys(), Risk{memory_risk(o.stream, o.steps), o.steps});
       }},
      {"failed", list_of(a("string")), "error messages of batches that could not be predicted",
       [](const Of& o) { return o.stream.failed; }}};
  return keys;
}

}  // namespace

json to_json(const BatchStream& stream, int steps) {
  return object_of(stream_keys(), StreamOf{stream, steps});
}

std::string stream_schema() {
  return schema_document("polyphony simulate --batches --format json",
                         schema_of(stream_keys(), "predictions of a stream of batches"),
                         json::object());
}

}  // namespace polyphony::sim
