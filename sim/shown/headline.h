// The first line of an answer: what was asked about.
#pragma once

#include <string>
#include <vector>

#include "shared/hardware/hardware.h"
#include "shared/scenario/scenario.h"
#include "sim/text/question_words.h"

namespace polyphony::sim {

// "vision 631M + projector 45M + language 7.6B | 8 A100-80 | global batch 128, sequence 8,192 |
// bf16, stack megatron-core": modules with their parameters, cluster, data, precision and software
// stack, in as many lines as the screen needs; ends with a line break.
//   tokens_per_sample   language tokens of a mean sample; 0: those of the scenario's typical batch
std::string headline(const Scenario& scenario, const HardwareProfile& profile,
                     double tokens_per_sample = 0);

std::string headline(const QuestionWords& words);

// The parts of that line, and how accurate the profile is (footing_text()).
QuestionWords question_words(const Scenario& scenario, const HardwareProfile& profile,
                             double tokens_per_sample = 0);

// "7.6B", "631M", "12k".
std::string parameters_text(double count);

}  // namespace polyphony::sim
