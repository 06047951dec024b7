// Packs short samples into sequences. Under mask "documents" (shared/model/model.h) packed samples
// do not see each other: a text ends a document.
#pragma once

#include <vector>

#include "shared/data/data.h"
#include "shared/model/model.h"

namespace polyphony::sim {

// Adds each sample, in order, to the first open sequence that has room for it (first fit). At most
// kOpen sequences are open; the fullest one is closed to open a new one. A sample longer than
// `tokens` of the language module gets a sequence of its own.
std::vector<Sample> pack(const Model& model, const std::vector<Sample>& samples,
                         std::int64_t tokens);

}  // namespace polyphony::sim
