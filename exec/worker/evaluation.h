// Accuracy on held-out samples, each evaluated separately.
// The share of held-out samples whose labels are all predicted correctly, and the number of samples
// evaluated. Equal on every rank.
#pragma once

#include "exec/data/dataset.h"
#include "exec/planning/step_data.h"
#include "exec/runner/runner.h"
#include "exec/worker/control.h"

namespace polyphony::exec {

// Held-out samples whose labels are all predicted, and how many were asked. Equal on every rank.
struct Answers {
  double share = 0;
  int asked = 0;
};
// Evaluates `samples` held-out samples, evenly spread over the data set; 0: all. Throws InputError
// if the data set has no held-out samples. Collective.
Answers evaluate(Control& control, Transport& transport, Runner& runner, const Scenario& scenario,
                 const StepPlanner& planner, const Dataset& dataset, int samples,
                 torch::Device device);

}  // namespace polyphony::exec
