// A published row as a question for the predictor, or why it cannot be asked.
//   Never filled silently: a blank that matters is a reason to skip. Blanks that hardly matter and
//   what stands for them: tied_embeddings untied (as where a layout cannot tie them), kv_heads as
//   heads, vpp, cp and ep 1, shard none in rows of time (a sharded sum moves the same bytes),
//   inter_node the device's usual NICs, LoRA rank 16. Width of a head where it is not hidden /
//   heads: public architecture of the named model.
// Memory is the row's software's (shared/held/stack_sizes.h); of its `variant` ce-fusion, cp-a2a
// and compile count.
// Contradictions: gpus = tp·cp·pp·dp; microbatch·dp divides global_batch; shard_ranks divide dp·cp;
// duplicate_of of a row itself.
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
  // Recomputation of a part of what `layout` recomputes: its time lies this far between none and
  // all of it. Memory: not known.
  std::optional<double> recomputed;
  std::string note;  // what was done otherwise than the row says
};
struct Skipped {
  std::string reason;
};
std::variant<PublishedCase, Skipped> make_case(const PublishedRow& row);

}  // namespace polyphony::sim
