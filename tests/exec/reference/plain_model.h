// A reference for the stages of tests/exec/support/tiny_model.h, written as simply as possible:
// whole weights, every image and every sample alone, dense masks, stock ATen operators, plain
// autograd. It uses no code of exec/ except the initial values (exec/parameters/init.h).
// Sources: as in exec/chunk/blocks.h.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/exec/support/tiny_model.h"

namespace polyphony::exec::testing {

struct PlainResult {
  double loss = 0;
  torch::Tensor predicted;                         // for the loss rows
  std::map<std::string, torch::Tensor> gradients;  // by parameter name
};
// The stages vision, projector and language, whole.
PlainResult plain_model(const std::vector<Stage>& stages, const TestWork& work);

}  // namespace polyphony::exec::testing
