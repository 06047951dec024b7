// Accuracy and loss on held-out samples, each evaluated separately.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "exec/data/dataset.h"
#include "exec/planning/step_data.h"
#include "exec/runner/runner.h"
#include "exec/worker/control.h"

namespace polyphony::exec {

// What was predicted for a held-out sample, each token from the true tokens before it.
struct SampleAnswer {
  std::size_t sample = 0;                       // number among the held-out samples, from 0
  std::vector<std::int64_t> labels, predicted;  // token ids, in order; of equal length
};
struct Answers {
  double share = 0;  // of the samples evaluated, those whose labels are all predicted correctly
  int asked = 0;     // number of samples evaluated
  double loss = 0;   // mean cross-entropy of their labels; its exponential is the perplexity
  std::vector<SampleAnswer> samples = {};  // if they are kept, on rank 0
};
struct EvaluationOptions {
  int samples = 0;    // evenly spread over the held-out ones; 0: all
  bool keep = false;  // Answers::samples
  torch::Device device = torch::kCPU;
};
// Evaluates held-out samples. The result is equal on every rank, but for Answers::samples. Throws
// InputError if the data set has no held-out samples. Collective.
Answers evaluate(Control& control, Transport& transport, Runner& runner, const Scenario& scenario,
                 const StepPlanner& planner, const Dataset& dataset,
                 const EvaluationOptions& options);

}  // namespace polyphony::exec
