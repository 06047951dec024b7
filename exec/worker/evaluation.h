// Accuracy and loss on held-out samples, each evaluated separately.
#pragma once

#include "exec/data/dataset.h"
#include "exec/planning/step_data.h"
#include "exec/runner/runner.h"
#include "exec/worker/control.h"

namespace polyphony::exec {

struct Answers {
  double share = 0;  // of the samples evaluated, those whose labels are all predicted correctly
  int asked = 0;     // number of samples evaluated
  double loss = 0;   // mean cross-entropy of their labels; its exponential is the perplexity
};
// Evaluates `samples` held-out samples, evenly spread over the data set; 0: all. The result is
// equal on every rank. Throws InputError if the data set has no held-out samples. Collective.
Answers evaluate(Control& control, Transport& transport, Runner& runner, const Scenario& scenario,
                 const StepPlanner& planner, const Dataset& dataset, int samples,
                 torch::Device device);

}  // namespace polyphony::exec
