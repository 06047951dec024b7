#include "shared/scenario/batch_json.h"
#include "shared/statistics.h"
#include "sim/answers/answers_json.h"
#include "sim/prediction/jitter.h"

namespace polyphony::sim {
namespace {

using nlohmann::json;

constexpr const char* kKeys[] = {"p50", "p95", "p99.9"};

}  // namespace

json to_json(const BatchStream& stream, int steps) {
  const std::vector<Seconds> times = stream.sorted_steps();
  json step = {{"largest_seconds", times.back().count()}}, stages = json::array(),
       samples = json::array();
  for (std::size_t i = 0; i < std::size(kStreamQuantiles); ++i)
    if (reaches(times.size(), kStreamQuantiles[i]))
      step[std::string(kKeys[i]) + "_seconds"] = nearest_rank(times, kStreamQuantiles[i]).count();
  for (std::size_t stage = 0; stage < stream.stages.size(); ++stage) {
    const std::vector<Bytes> peaks = stream.sorted_peaks(stage);
    json row = {{"stage", stream.stages[stage]}, {"largest_bytes", peaks.back().value}};
    for (std::size_t i = 0; i < std::size(kStreamQuantiles); ++i)
      if (reaches(peaks.size(), kStreamQuantiles[i]))
        row[std::string(kKeys[i]) + "_bytes"] = nearest_rank(peaks, kStreamQuantiles[i]).value;
    stages.push_back(row);
  }
  const StreamBatch& worst = stream.worst();
  for (const StreamSample& sample : worst.samples) {
    json tokens;
    for (const auto& [modality, count] : sample.tokens) tokens[name(modality)] = count;
    samples.push_back({{"id", sample.id}, {"tokens", tokens}, {"held_bytes", sample.held.value}});
  }
  const MemoryRisk risk = memory_risk(stream, steps);
  return {{"batches", stream.batches.size()},
          {"profile", stream.profile},
          {"stack", stream.stack},
          {"predictor", stream.predictor == Predictor::simulate ? "simulate" : "estimate"},
          {"step", step},
          {"stages", stages},
          {"device_bytes", stream.device.value},
          {"worst",
           {{"batch", worst.number},
            {"stage", stream.stages[worst.worst]},
            {"peak_bytes", stream.peak(worst).value},
            {"samples", samples}}},
          {"out_of_memory",
           {{"batches", risk.exceeded},
            {"steps", steps},
            {"per_step", risk.per_step},
            {"per_step_most", risk.per_step_most},
            {"per_step_tail", risk.per_step_tail},
            {"in_run", risk.in_run},
            {"in_run_most", risk.in_run_most},
            {"in_run_tail", risk.in_run_tail}}},
          {"failed", stream.failed}};
}

}  // namespace polyphony::sim
