// Parses the training options of polyphony-worker's command line.
#pragma once

#include <cxxopts.hpp>

#include "exec/worker/train.h"

namespace polyphony::exec {

// Throws InputError if an option is invalid.
TrainOptions train_options(const cxxopts::ParseResult& args, const Scenario& scenario, Rank rank);

}  // namespace polyphony::exec
