// The keys of a search, listed once.
//
// The form and its schema, the reader, the resolved form and comparisons of two searches all
// iterate over these lists. To add a choice, add a member to ModuleSearch or Search
// (shared/scenario/scenario.h) and a line here.
#pragma once

#include "shared/scenario/scenario.h"

namespace polyphony {

// Calls visit(key, list of choices, description) for each key of one module, in the order of the
// form. The list is const if `search` is.
template <class Searched, class Visit>
void visit_module_choices(Searched& search, Visit visit) {
  visit("tp", search.tp, "number of tensor-parallel ranks");
  visit("cp", search.cp, "number of context-parallel ranks");
  visit("pp", search.pp, "number of pipeline ranks");
  visit("vpp", search.vpp, "number of virtual pipeline stages per rank");
  visit("dp", search.dp, "number of data-parallel replicas");
  visit("ep", search.ep, "number of expert-parallel ranks");
  visit("expert_tp", search.expert_tp,
        "number of tensor-parallel ranks of one expert: 0 (as tp) or 1");
  visit("ranks", search.ranks,
        "number of ranks that the module owns (placements non-colocated and mixed)");
  visit("sp", search.sp, "sequence parallelism over the tensor-parallel ranks");
  visit("tp_pieces", search.tp_pieces,
        "number of chunks in which tensor-parallel GEMMs overlap with their collectives; only 1 "
        "when absent");
  visit("recompute", search.recompute, "activations that the backward pass recomputes");
  visit("shard", search.shard, "what is sharded over the data-parallel ranks (ZeRO)");
  visit("shard_ranks", search.shard_ranks,
        "number of ranks of a shard group (HSDP); 0: all dp·cp ranks");
  visit("tokens", search.tokens,
        "how the tokens of a sequence are assigned to the context-parallel ranks");
  visit("cp_attention", search.cp_attention, "how context-parallel ranks compute attention");
  visit("spread", search.spread,
        "what an encoder's ranks get: samples, single images, or copied (all images of a lane on "
        "every "
        "context-parallel rank)");
}

// As above, for the keys of the whole layout.
template <class Searched, class Visit>
void visit_choices(Searched& search, Visit visit) {
  visit("placement", search.placement, "how the modules are placed on the ranks");
  visit("schedule", search.schedule, "pipeline schedule");
  visit("microbatch", search.microbatch,
        "number of samples per microbatch and data-parallel replica of the language module");
  visit("encoder_microbatches", search.encoder_microbatches,
        "colocated encoders with a language pipeline: number of encoder microbatches per step; 0: "
        "one");
  visit("encoder_order", search.encoder_order,
        "when encoders that share the language module's ranks run");
  visit("bridge", search.bridge,
        "how rows are transferred between modules with grids of their own");
}

}  // namespace polyphony
