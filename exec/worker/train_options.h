// What polyphony-worker's command line says of the training.
#pragma once

#include <cxxopts.hpp>

#include "exec/worker/train.h"

namespace polyphony::exec {

// Errors: InputError.
TrainOptions train_options(const cxxopts::ParseResult& args, const Scenario& scenario, Rank rank);

}  // namespace polyphony::exec
