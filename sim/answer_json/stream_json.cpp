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

// Of sorted values. `unit`: behind the names, "_seconds".
template <class Value>
JsonKeys<std::vector<Value>> quantile_keys(const std::string& unit, const json& schema) {
  using Of = std::vector<Value>;
  JsonKeys<Of> keys;
  for (std::size_t i = 0; i < std::size(kStreamQuantiles); ++i)
    keys.push_back({kStreamQuantileNames[i] + unit, schema, "where so many batches reach it",
                    [q = kStreamQuantiles[i]](const Of& values) -> std::optional<json> {
                      if (!stream_reaches(values.size(), q)) return {};
                      return number(nearest_rank(values, q));
                    },
                    false});
  keys.push_back({"largest" + unit, schema, "of all batches",
                  [](const Of& values) { return number(values.back()); }});
  return keys;
}

const JsonKeys<std::vector<Seconds>>& step_keys() {
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
        name, schema_of(share_keys(), "shares of the step"), about,
        [share](const Of& s) { return object_of(share_keys(), s.sorted_bubbles(share)); }};
  };
  static const JsonKeys<Of> keys{
      key("mean", "over ranks", &Bubbles::mean),
      key("worst_rank", "of the rank that idles most", &Bubbles::worst),
      key("communication", "of the mean: messages and collectives under way",
          &Bubbles::communication)};
  return keys;
}

json stage_schema() {
  json schema = schema_of(quantile_keys<Bytes>("_bytes", a("integer")), "peaks of one stage");
  schema["properties"]["stage"] = {{"type", "string"}, {"description", "its name"}};
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
      {"id", a("integer"), "the sample's", [](const Of& s) { return s.id; }},
      {"tokens", map_of(a("integer")), "by modality",
       [](const Of& s) {
         json tokens;
         for (const auto& [modality, count] : s.tokens) tokens[name(modality)] = count;
         return tokens;
       }},
      {"held_bytes", a("integer"), "of the peak", [](const Of& s) { return s.held.value; }}};
  return keys;
}

const JsonKeys<BatchStream>& worst_keys() {
  using Of = BatchStream;
  static const JsonKeys<Of> keys{
      {"batch", a("integer"), "its number", [](const Of& s) { return s.worst().number; }},
      {"stage", a("string"), "of the peak", [](const Of& s) { return s.stages[s.worst().worst]; }},
      {"peak_bytes", a("integer"), "of its worst rank",
       [](const Of& s) { return s.peak(s.worst()).value; }},
      {"samples", list_of(schema_of(sample_keys(), "a sample")), "that hold most of it",
       [](const Of& s) { return array_of(sample_keys(), s.worst().samples); }}};
  return keys;
}

struct Risk {
  MemoryRisk of;
  int steps = 0;
};
const JsonKeys<Risk>& risk_keys() {
  using Of = Risk;
  static const JsonKeys<Of> keys{
      {"batches", a("integer"), "that do not fit", [](const Of& r) { return r.of.exceeded; }},
      {"steps", a("integer"), "of the run", [](const Of& r) { return r.steps; }},
      {"per_step", a("number"), "as seen", [](const Of& r) { return r.of.per_step; }},
      {"per_step_most", a("number"), "its 95 % bound",
       [](const Of& r) { return r.of.per_step_most; }},
      {"per_step_tail", a("number"), "by an exponential tail",
       [](const Of& r) { return r.of.per_step_tail; }},
      {"in_run", a("number"), "as seen", [](const Of& r) { return r.of.in_run; }},
      {"in_run_most", a("number"), "its 95 % bound", [](const Of& r) { return r.of.in_run_most; }},
      {"in_run_tail", a("number"), "by an exponential tail",
       [](const Of& r) { return r.of.in_run_tail; }}};
  return keys;
}

struct StreamOf {
  const BatchStream& stream;
  int steps;
};
const JsonKeys<StreamOf>& stream_keys() {
  using Of = StreamOf;
  static const JsonKeys<Of> keys{
      {"batches", a("integer"), "that have an answer",
       [](const Of& o) { return o.stream.batches.size(); }},
      {"profile", a("string"), "that priced them", [](const Of& o) { return o.stream.profile; }},
      {"stack", a("string"), "the software", [](const Of& o) { return o.stream.stack; }},
      {"predictor", a("string"), "simulate or estimate",
       [](const Of& o) {
         return o.stream.predictor == Predictor::simulate ? "simulate" : "estimate";
       }},
      {"planner", a("string"), "that planned each batch",
       [](const Of& o) -> std::optional<json> {
         if (o.stream.planner.empty()) return {};
         return o.stream.planner;
       },
       false},
      {"step", schema_of(step_keys(), "seconds"), "a batch's",
       [](const Of& o) { return object_of(step_keys(), o.stream.sorted_steps()); }},
      {"batch_seconds", list_of(a("number")), "of each batch's step, in their order",
       [](const Of& o) {
         json seconds = json::array();
         for (const StreamBatch& batch : o.stream.batches) seconds.push_back(batch.step.count());
         return seconds;
       }},
      {"bubbles", schema_of(bubble_keys(), "a batch's"),
       "shares of the step in which compute streams have nothing to do",
       [](const Of& o) { return object_of(bubble_keys(), o.stream); }},
      {"stages", list_of(stage_schema()), "memory",
       [](const Of& o) {
         json stages = json::array();
         for (std::size_t stage = 0; stage < o.stream.stages.size(); ++stage)
           stages.push_back(stage_json(o.stream, stage));
         return stages;
       }},
      {"device_bytes", a("integer"), "0: not known",
       [](const Of& o) { return o.stream.device.value; }},
      {"worst", schema_of(worst_keys(), "the largest peak"), "of all batches",
       [](const Of& o) { return object_of(worst_keys(), o.stream); }},
      {"largest_samples_peak_bytes", a("integer"),
       "of a data set: the peak of a batch of its largest samples",
       [](const Of& o) {
         return o.stream.largest_samples
                    ? std::optional<json>(o.stream.peak(*o.stream.largest_samples).value)
                    : std::optional<json>();
       },
       false},
      {"out_of_memory", schema_of(risk_keys(), "the risk"), "of the run",
       [](const Of& o) {
         return object_of(risk_keys(), Risk{memory_risk(o.stream, o.steps), o.steps});
       }},
      {"failed", list_of(a("string")), "why a batch has no answer",
       [](const Of& o) { return o.stream.failed; }}};
  return keys;
}

}  // namespace

json to_json(const BatchStream& stream, int steps) {
  return object_of(stream_keys(), StreamOf{stream, steps});
}

std::string stream_schema() {
  return schema_document("What polyphony simulate --batches --format json prints",
                         schema_of(stream_keys(), "a stream of batches"), json::object());
}

}  // namespace polyphony::sim
