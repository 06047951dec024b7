// Scenarios that the closed-form screen is held against Programs on: published models and small ones,
// on clusters of several kinds; dense, experts, blocks that differ, LoRA, frozen parts, several
// encoders, sound, diffusion; equal samples and samples of all sizes.
#pragma once

#include <string>
#include <vector>

#include "shared/scenario/scenario.h"

namespace polyphony::tests {

struct Question {
  std::string name;
  Scenario scenario;
  std::string stack = {};  // a shipped one; empty: this project's
  bool small = false;  // so small that layouts which do not fold are lowered whole, and simulated
};
std::vector<Question> screen_questions();

}  // namespace polyphony::tests
