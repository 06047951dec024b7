// What the stages of tests/exec/support/tiny_model.h must compute, said again in the plainest way: whole
// weights, every image and every sample alone, dense masks, stock ATen operators, plain autograd.
// Nothing of exec/ computes here but the initial values (exec/parameters/init.h).
// Sources: as exec/layers/blocks.h.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/exec/support/tiny_model.h"

namespace polyphony::exec::testing {

struct PlainResult {
  double loss = 0;
  torch::Tensor predicted;                         // of the loss rows
  std::map<std::string, torch::Tensor> gradients;  // by parameter name
};
// Stages: vision, projector and language, whole.
PlainResult plain_model(const std::vector<Stage>& stages, const TestWork& work);

}  // namespace polyphony::exec::testing
