// Samples as the model reads them (`polyphony scan --show`), for a terminal.
#pragma once

#include <string>
#include <vector>

#include "sim/datasets/shown_samples.h"

namespace polyphony::sim {

// Returns each sample's parts, one below the other: "read" for text that is only read, "trained"
// for text that the loss counts, "image" and "audio" with their size.
std::string shown_samples_text(const std::vector<ShownSample>& samples);

}  // namespace polyphony::sim
