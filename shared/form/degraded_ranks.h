// The form and the reader of the key "degraded" of a cluster. Also used for traces, which have
// ranks but no scenario.
#pragma once

#include <vector>

#include "shared/hardware/cluster.h"
#include "shared/text/strict_json.h"

namespace polyphony {

// Returns the form of the list.
Form degraded_ranks_form();
// Returns the degraded ranks, in ascending order of rank. `value` must have passed check() with the
// form above. Throws InputError if a rank appears twice.
std::vector<Degraded> read_degraded_ranks(const JsonValue& value);

}  // namespace polyphony
