// A cluster's "degraded": its form and its reader, also for traces of ranks without a scenario.
#pragma once

#include <vector>

#include "shared/hardware/cluster.h"
#include "shared/text/strict_json.h"

namespace polyphony {

Form degraded_ranks_form();
// Of a checked value; by rank. InputError: a rank twice.
std::vector<Degraded> read_degraded_ranks(const JsonValue& value);

}  // namespace polyphony
