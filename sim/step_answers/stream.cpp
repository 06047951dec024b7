#include "sim/step_answers/stream.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "shared/error.h"
#include "shared/program/stage_name.h"
#include "shared/program/work.h"
#include "shared/scenario/typical_batch.h"
#include "shared/statistics.h"
#include "sim/prediction/jitter.h"
#include "sim/runner/worker_pool.h"
#include "traces/compare/idle.h"

namespace polyphony::sim {
namespace {

constexpr std::size_t kNamedSamples = 3;

std::vector<StreamSample> named_samples(const Prediction& prediction, Rank rank) {
  std::vector<StreamSample> result;
  const Seconds when = prediction.memory[rank.value].when;
  for (const HeldSample& held : held_samples(prediction.program, prediction.timeline, rank, when)) {
    if (result.size() == kNamedSamples) break;
    const Sample& sample = prediction.program.batch.samples[held.sample];
    std::map<Modality, std::int64_t> tokens;
    for (const Item& item : sample.items) tokens[item.modality] += item.tokens;
    result.push_back({sample.id, {tokens.begin(), tokens.end()}, held.bytes});
  }
  return result;
}

Bubbles bubbles_of(const Prediction& prediction) {
  using traces::Idle;
  const auto ranks = traces::idle_times(prediction.program, prediction.timeline);
  const auto idle = [](const traces::IdleTimes& times) {
    return std::accumulate(times.begin(), times.end(), Seconds(0));
  };
  const traces::IdleTimes mean = traces::mean(ranks);
  Seconds worst{};
  for (const traces::IdleTimes& times : ranks) worst = std::max(worst, idle(times));
  const Seconds others = mean[static_cast<std::size_t>(Idle::imbalance)] +
                         mean[static_cast<std::size_t>(Idle::bubble)];
  const Seconds step = prediction.step();
  return {idle(mean) / step, worst / step, (idle(mean) - others) / step};
}

StreamBatch outcome_of(const Prediction& prediction, const std::vector<std::size_t>& stage_of,
                       std::size_t stages, std::uint64_t number) {
  StreamBatch batch;
  batch.number = number;
  batch.step = prediction.step();
  batch.bubbles = bubbles_of(prediction);
  batch.peaks.assign(stages, Bytes(0));
  Rank worst(0);
  for (std::size_t rank = 0; rank < prediction.memory.size(); ++rank) {
    Bytes& peak = batch.peaks[stage_of[rank]];
    peak = std::max(peak, prediction.memory[rank].peak);
    if (prediction.memory[rank].peak > prediction.memory[worst.value].peak) worst = Rank(rank);
  }
  batch.worst = stage_of[worst.value];
  batch.when = prediction.memory[worst.value].when;
  batch.samples = named_samples(prediction, worst);
  return batch;
}

// Returns a batch of the samples of a data set that have the most tokens. Samples are repeated if
// the data set has fewer than a batch.
Batch largest_batch(const Scenario& scenario) {
  std::vector<SampleList::Run> runs = scenario.data.samples.runs();
  const auto tokens = [&](const SampleList::Run& run) {
    std::int64_t sum = language_rows(scenario.model, Sample{0, run.items});
    for (const Item& item : run.items)
      if (item.modality != Modality::text) sum += item.tokens;
    return sum;
  };
  std::stable_sort(runs.begin(), runs.end(),
                   [&](const auto& a, const auto& b) { return tokens(a) > tokens(b); });
  const auto wanted = static_cast<std::size_t>(scenario.data.global_batch);
  Batch batch;
  while (batch.samples.size() < wanted)
    for (const SampleList::Run& run : runs)
      for (std::uint64_t i = 0; i < run.count && batch.samples.size() < wanted; ++i)
        batch.samples.push_back({static_cast<std::uint32_t>(run.first + i), run.items});
  return batch;
}

// Returns the index of each rank's stage in `names`, which it fills; the same for every batch.
std::vector<std::size_t> find_stages(const Program& program, std::vector<std::string>& names) {
  std::vector<std::size_t> stage_of;
  for (const std::string& name : stage_names(program)) {
    const auto found = std::find(names.begin(), names.end(), name);
    stage_of.push_back(static_cast<std::size_t>(found - names.begin()));
    if (found == names.end()) names.push_back(name);
  }
  return stage_of;
}

}  // namespace

BatchStream predict_stream(const Scenario& scenario, const Layout& layout,
                           const HardwareProfile& profile, const StreamOptions& options) {
  BatchStream stream;
  stream.profile = profile.name;
  stream.stack = profile.stack.name;
  stream.predictor = options.predictor;
  if (layout.planner != Planning::none) stream.planner = name(layout.planner);
  stream.device = scenario.cluster.device.memory;
  // Stages are split and costs computed once, not for every batch.
  const PlannedLayout planned = plan_layout(borrow_inputs(scenario, profile), layout);
  const auto predicted = [&](std::uint64_t number) {
    return predict(planned, batch_of_step(scenario, number), options.predictor);
  };
  const auto first = predicted(0);
  if (const auto* no = std::get_if<Infeasible>(&first)) {
    stream.failed.push_back(no->reason);
    return stream;
  }
  const std::vector<std::size_t> stage_of =
      find_stages(std::get<Prediction>(first).program, stream.stages);
  if (!scenario.data.samples.empty()) {
    const auto largest = predict(planned, largest_batch(scenario), options.predictor);
    if (const auto* found = std::get_if<Prediction>(&largest))
      stream.largest_samples = outcome_of(*found, stage_of, stream.stages.size(), 0);
  }
  using Outcome = std::variant<StreamBatch, Infeasible>;
  const auto outcomes = run_on_threads(
      options.jobs, options.batches,
      [&](std::size_t i) -> Outcome {
        const auto outcome = predicted(i);
        if (const auto* no = std::get_if<Infeasible>(&outcome)) return *no;
        return outcome_of(std::get<Prediction>(outcome), stage_of, stream.stages.size(), i);
      },
      [&](std::size_t done) {
        if (options.progress)
          options.progress(static_cast<double>(done) / static_cast<double>(options.batches));
      });
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const auto failed = [&](const std::string& why) {
      stream.failed.push_back("batch " + std::to_string(i) + ": " + why);
    };
    if (const auto* no = std::get_if<TaskFailed>(&outcomes[i])) {
      failed(no->what);
      continue;
    }
    const auto& outcome = std::get<Outcome>(outcomes[i]);
    if (const auto* no = std::get_if<Infeasible>(&outcome))
      failed(no->reason);
    else
      stream.batches.push_back(std::get<StreamBatch>(outcome));
  }
  return stream;
}

const StreamBatch& BatchStream::worst() const {
  return *std::max_element(
      batches.begin(), batches.end(),
      [&](const StreamBatch& a, const StreamBatch& b) { return peak(a) < peak(b); });
}

std::vector<Seconds> BatchStream::sorted_steps() const {
  std::vector<Seconds> steps;
  for (const StreamBatch& batch : batches) steps.push_back(batch.step);
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::vector<double> BatchStream::sorted_bubbles(double Bubbles::* share) const {
  std::vector<double> shares;
  for (const StreamBatch& batch : batches) shares.push_back(batch.bubbles.*share);
  std::sort(shares.begin(), shares.end());
  return shares;
}

bool stream_reaches(std::size_t batches, double q) { return reaches(batches, std::max(q, 1 - q)); }

std::vector<Bytes> BatchStream::sorted_peaks(std::size_t stage) const {
  std::vector<Bytes> peaks;
  for (const StreamBatch& batch : batches) peaks.push_back(batch.peaks[stage]);
  std::sort(peaks.begin(), peaks.end());
  return peaks;
}

std::optional<double> exponential_tail(std::vector<Bytes> values, Bytes limit) {
  constexpr std::size_t kShare = 20, kLeast = 10;
  const std::size_t largest = std::max(kLeast, values.size() / kShare);
  if (values.size() <= largest) return std::nullopt;
  std::sort(values.begin(), values.end(), std::greater<>());
  const Bytes threshold = values[largest];
  double excess = 0;
  for (std::size_t i = 0; i < largest; ++i)
    excess += static_cast<double>((values[i] - threshold).value) / static_cast<double>(largest);
  const auto seen = static_cast<double>(
      std::count_if(values.begin(), values.end(), [&](Bytes value) { return value > limit; }));
  const auto all = static_cast<double>(values.size());
  if (limit < threshold) return seen / all;
  if (excess <= 0) return 0.0;
  return static_cast<double>(largest) / all *
         std::exp(-static_cast<double>((limit - threshold).value) / excess);
}

MemoryRisk memory_risk(const BatchStream& stream, double steps) {
  MemoryRisk risk;
  std::vector<Bytes> peaks;
  for (const StreamBatch& batch : stream.batches) {
    peaks.push_back(stream.peak(batch));
    if (peaks.back() > stream.device) ++risk.exceeded;
  }
  if (peaks.empty()) return risk;
  const auto count = static_cast<std::int64_t>(peaks.size());
  risk.per_step = static_cast<double>(risk.exceeded) / static_cast<double>(count);
  risk.per_step_most = upper_probability(static_cast<std::int64_t>(risk.exceeded), count);
  risk.per_step_tail = exponential_tail(std::move(peaks), stream.device);
  risk.in_run = any_of(risk.per_step, steps);
  risk.in_run_most = any_of(risk.per_step_most, steps);
  if (risk.per_step_tail) risk.in_run_tail = any_of(*risk.per_step_tail, steps);
  return risk;
}

}  // namespace polyphony::sim
