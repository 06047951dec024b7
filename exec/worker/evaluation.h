// How many held-out samples the model answers right, each asked alone.
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
// Collective. `samples`: how many, spread over all; 0: all. InputError when the data set holds none
// out.
Answers evaluate(Control& control, Transport& transport, Runner& runner, const Scenario& scenario,
                 const StepPlanner& planner, const Dataset& dataset, int samples,
                 torch::Device device);

}  // namespace polyphony::exec
