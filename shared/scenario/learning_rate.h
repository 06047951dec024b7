// The learning rate of each step: linear warm-up, then the decay that Training::decay names. With
// w warm-up steps, D steps until the end of the decay, and p = (step − w) / (D − w) in [0, 1]:
//   constant  rate
//   linear    min + (rate − min) · (1 − p)
//   cosine    min + (rate − min) · (1 + cos πp) / 2
//   wsd       rate, and over the last d steps before D linear down to min
// Source: the definitions of transformers' get_scheduler() and Megatron-LM's --lr-decay-style;
// wsd as get_wsd_schedule() with decay_type linear. The first step of a warm-up has rate / w.
#pragma once

#include <cstdint>

#include "shared/scenario/scenario.h"

namespace polyphony {

// Returns the learning rate of a step, counted from 0, before the factors of modules.
double learning_rate(const Training& training, std::int64_t step);
// Return the step at which the decay ends, and how many steps of wsd decay.
std::int64_t decay_end(const Training& training);
std::int64_t wsd_decay(const Training& training);
// Returns the factor of a module's learning rate.
double rate_factor(const Training& training, ModuleId module);

}  // namespace polyphony
