// A sweep as comma-separated values (RFC 4180; the first line names the columns): one row a candidate,
// then the baselines; of several questions, the best of each placement of each. Seconds, bytes and shares
// as plain numbers; nothing where nothing is known.
#pragma once

#include <string>

#include "sim/sweep/vary.h"

namespace polyphony::sim {

std::string csv_text(const Sweep& sweep, const Model& model);
std::string csv_text(const Varied& varied);

}  // namespace polyphony::sim
