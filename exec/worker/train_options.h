// Parses the training options of polyphony-worker's command line.
#pragma once

#include <cxxopts.hpp>

#include "exec/worker/train.h"

namespace polyphony::exec {

// Returns whether the run in --out is continued: --resume, or --auto-resume and there is one. To be
// called before ranks connect, since rank 0 writes to the folder later.
bool resumes(const cxxopts::ParseResult& args);
// Throws InputError if an option is invalid.
TrainOptions train_options(const cxxopts::ParseResult& args, const Scenario& scenario, Rank rank);

}  // namespace polyphony::exec
