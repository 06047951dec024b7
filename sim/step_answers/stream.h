// Predicts many steps with varying data: each batch of the scenario's stream is planned, lowered
// and predicted separately, on several threads. Gives percentiles of step time, idle time and peak
// memory, and the probability of running out of memory.
//
//   Percentiles   of the predicted batches; omitted if there are too few batches for one
//   Bubbles       shares of a step in which a rank's compute stream is idle (traces/compare/idle.h)
//
// The probability that any of M steps runs out of memory is 1 - (1 - p)^M, if batches are
// independent draws. The probability p of one step is given in three ways:
//   per_step        number of batches that exceed the memory / number of batches
//   per_step_most   the 95 % Clopper-Pearson upper bound of that; 3 / batches if none exceeds
//   per_step_tail   from an exponential tail fitted to the largest 5 % of the peaks (at least ten).
//                   An assumption; too large if the data are bounded. Absent: ten batches or fewer.
// Source of the tail: peaks over threshold with shape 0, Pickands, Annals of Statistics 1975.
//
// Does not model: fragmentation of the allocator, memory of a batch's input tensors.
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
  Bytes held{};  // its memory on the worst rank at the time of the peak
};
// Fractions of the step.
struct Bubbles {
  double mean = 0;           // over ranks
  double worst = 0;          // of the rank that idles most
  double communication = 0;  // part of the mean spent waiting for messages and collectives
};
struct StreamBatch {
  std::uint64_t number = 0;
  Seconds step{};
  Bubbles bubbles;
  std::vector<Bytes> peaks;           // by BatchStream::stages
  std::size_t worst = 0;              // index of the largest in `peaks`
  Seconds when{};                     // time of that peak
  std::vector<StreamSample> samples;  // the samples with the most memory at that time
};
struct BatchStream {
  std::string profile, stack;  // their names
  std::string planner;         // the layout's planner, which plans each batch; empty: none
  Predictor predictor = Predictor::estimate;
  std::vector<std::string> stages;
  std::vector<StreamBatch> batches;
  std::vector<std::string> failed;  // error messages of batches without an answer
  Bytes device{};                   // memory of a device
  Bytes peak(const StreamBatch& batch) const { return batch.peaks[batch.worst]; }
  const StreamBatch& worst() const;  // with the largest peak; requires at least one batch
  // For a data set: a batch of its largest samples, the largest first. Steps draw such a batch at
  // most once an epoch; random batches stay below it.
  std::optional<StreamBatch> largest_samples{};
  std::vector<Seconds> sorted_steps() const;
  std::vector<double> sorted_bubbles(double Bubbles::* share) const;
  std::vector<Bytes> sorted_peaks(std::size_t stage) const;
};
// The percentiles in answers, and their names.
inline constexpr double kStreamQuantiles[] = {0.05, 0.5, 0.95, 0.999};
inline constexpr const char* kStreamQuantileNames[] = {"p5", "p50", "p95", "p99.9"};
// Returns whether there are enough batches for quantile `q`, in the upper or the lower tail.
bool stream_reaches(std::size_t batches, double q);

struct StreamOptions {
  std::size_t batches = 100;
  int jobs = 1;
  Predictor predictor = Predictor::estimate;
  std::function<void(double share)> progress;
};
// Predicts the first options.batches batches of the scenario's stream. Failed batches are listed in
// `failed`; they are not an error.
BatchStream predict_stream(const Scenario& scenario, const Layout& layout,
                           const HardwareProfile& profile, const StreamOptions& options);

// Probabilities of running out of memory; see the top of this file.
struct MemoryRisk {
  std::size_t exceeded = 0;  // number of batches that exceed the memory
  double per_step = 0, per_step_most = 0;
  double in_run = 0, in_run_most = 0;
  std::optional<double> per_step_tail, in_run_tail;
};
// Returns the probabilities per step and for a run of `steps` steps.
MemoryRisk memory_risk(const BatchStream& stream, double steps);
// Returns P(a value > limit) according to an exponential tail fitted to the largest 5 % of
// `values`; nothing if there are too few of them.
std::optional<double> exponential_tail(std::vector<Bytes> values, Bytes limit);

}  // namespace polyphony::sim
