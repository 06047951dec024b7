// Converts a published measurement into a scenario, layout and profile that can be predicted, or
// gives the reason why it cannot.
//
// Missing values are never filled in silently: a row with a blank that matters is skipped. Blanks
// that hardly matter have these defaults: tied_embeddings untied (also used where a layout cannot
// tie them); kv_heads equal to heads; vpp, cp and ep 1; shard none in rows of time (a sharded
// reduction moves the same bytes); inter_node the device's usual NICs; LoRA rank 16. If a head's
// width is not hidden / heads, it is from the public architecture of the named model.
//
// Memory follows the rules of the row's software (shared/held/stack_sizes.h). Of the values of
// `variant`, ce-fusion, cp-a2a and compile affect it.
//
// Rows are skipped as contradictory unless gpus = tp·cp·pp·dp, microbatch·dp divides global_batch,
// and shard_ranks divides dp·cp; and if duplicate_of names the row itself.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "shared/hardware/hardware.h"
#include "shared/scenario/scenario.h"
#include "sim/published/row.h"

namespace polyphony::sim {

struct PublishedCase {
  Scenario scenario;
  Layout layout;
  HardwareProfile profile;
  // If the software recomputes only a part of what `layout` recomputes: the fraction by which the
  // step time lies between no and all recomputation. Memory is not predicted then.
  std::optional<double> recomputed;
  std::string note;  // what differs from the row
};
struct Skipped {
  std::string reason;
};
// Returns the case, or the reason why the row cannot be predicted.
std::variant<PublishedCase, Skipped> make_case(const PublishedRow& row);

}  // namespace polyphony::sim
