// Short samples side by side in one sequence. Under mask "documents" (shared/model/model.h) they do not see each other: a text
// ends a document.
#pragma once

#include <vector>

#include "shared/data/data.h"
#include "shared/model/model.h"

namespace polyphony::sim {

// Each sample goes to the first open sequence that has room for it, in their order; kOpen are open at most, and the fullest is
// closed for a new one. A sample longer than `tokens` of the language module stays alone.
std::vector<Sample> pack(const Model& model, const std::vector<Sample>& samples,
                         std::int64_t tokens);

}  // namespace polyphony::sim
