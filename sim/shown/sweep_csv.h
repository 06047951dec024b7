// A sweep as comma-separated values (RFC 4180; the first line names the columns): one row a
// candidate, then the baselines; with --vary, the best of each placement of each question. Seconds,
// bytes and shares are plain numbers, unknown ones are empty.
#pragma once

#include <string>

#include "sim/sweep/vary.h"

namespace polyphony::sim {

std::string csv_text(const Sweep& sweep, const Model& model);
std::string csv_text(const Varied& varied);

}  // namespace polyphony::sim
