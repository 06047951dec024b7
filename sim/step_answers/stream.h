// Predicts many steps of varying data: each batch of the scenario's stream is planned, lowered and
// predicted again, in worker processes.
//   Percentiles are of the batches seen: those that so few do not reach are left out.
//   Bubbles: shares of a step in which a rank's compute stream has nothing to do (traces/compare/idle.h).
//   Out of memory in M steps: 1 - (1 - p)^M, batches taken as independent draws, p
//     seen       exceedances ÷ batches
//     at most    its Clopper-Pearson bound at 95 %: 3 ÷ batches when none was seen
//     tail       what an exponential tail fitted to the largest twentieth of the peaks (ten at
//                least) says; an assumption, too large where data are bounded
//   Source of the tail: peaks over threshold with shape 0, Pickands, Annals of Statistics 1975.
// Does not model: fragmentation of the allocator, a batch's own tensors.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "shared/program/held_samples.h"
#include "sim/prediction/predict.h"

namespace polyphony::sim {

struct StreamSample {
  std::uint32_t id = 0;
  std::vector<std::pair<Modality, std::int64_t>> tokens;  // by modality, of all its items
  Bytes held{};                                           // at the peak of the worst rank
};
struct Bubbles {
  double mean = 0;           // over ranks
  double worst = 0;          // of the rank that idles most
  double communication = 0;  // of the mean, what waits for messages and collectives under way
};
struct StreamBatch {
  std::uint64_t number = 0;
  Seconds step{};
  Bubbles bubbles;
  std::vector<Bytes> peaks;           // by BatchStream::stages
  std::size_t worst = 0;              // position in `peaks`
  Seconds when{};                     // of that peak
  std::vector<StreamSample> samples;  // that hold most of it
};
struct BatchStream {
  std::string profile, stack;  // their names
  std::string planner;         // the layout's, that plans each batch; empty: none
  Predictor predictor = Predictor::estimate;
  std::vector<std::string> stages;
  std::vector<StreamBatch> batches;
  std::vector<std::string> failed;  // why a batch has no answer
  Bytes device{};
  Bytes peak(const StreamBatch& batch) const { return batch.peaks[batch.worst]; }
  const StreamBatch& worst() const;  // needs a batch
  // Of a data set: a batch of its largest samples, the largest first. Steps draw such a batch at
  // most once an epoch; random batches stay below it.
  std::optional<StreamBatch> largest_samples{};
  std::vector<Seconds> sorted_steps() const;
  std::vector<double> sorted_bubbles(double Bubbles::* share) const;
  std::vector<Bytes> sorted_peaks(std::size_t stage) const;
};
// Of which answers print percentiles, and by what names.
inline constexpr double kStreamQuantiles[] = {0.05, 0.5, 0.95, 0.999};
inline constexpr const char* kStreamQuantileNames[] = {"p5", "p50", "p95", "p99.9"};
// Whether so many batches reach it: from above, or from below.
bool stream_reaches(std::size_t batches, double q);

struct StreamOptions {
  std::size_t batches = 100;
  int jobs = 1;
  Predictor predictor = Predictor::estimate;
  std::function<void(double share)> progress;
};
BatchStream predict_stream(const Scenario& scenario, const Layout& layout,
                           const HardwareProfile& profile, const StreamOptions& options);

struct MemoryRisk {
  std::size_t exceeded = 0;
  double per_step = 0, per_step_most = 0, per_step_tail = 0;
  double in_run = 0, in_run_most = 0, in_run_tail = 0;
};
MemoryRisk memory_risk(const BatchStream& stream, double steps);
// P(one value > limit) by an exponential tail over the largest twentieth.
double exponential_tail(std::vector<Bytes> values, Bytes limit);

}  // namespace polyphony::sim
