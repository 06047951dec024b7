// Scenarios for comparing the closed-form screen with Programs: published and small models, on
// several kinds of clusters; dense models, mixtures of experts, different blocks, LoRA, frozen
// modules, several encoders, audio, diffusion; samples of equal and of varying size.
#pragma once

#include <string>
#include <vector>

#include "shared/scenario/scenario.h"

namespace polyphony::tests {

struct Question {
  std::string name;
  Scenario scenario;
  std::string stack = {};  // a shipped software stack; empty: this project's own
  bool small = false;  // so small that layouts which do not fold are lowered whole, and simulated
};
std::vector<Question> screen_questions();

}  // namespace polyphony::tests
