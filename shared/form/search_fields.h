// The keys of a search, once: the form and schema, the reader and the resolved form go over them, and
// so does whoever compares two searches. A new choice is a member of ModuleSearch or Search
// (shared/scenario/scenario.h) and a line here.
#pragma once

#include "shared/scenario/scenario.h"

namespace polyphony {

// visit(key, list of choices, what it chooses) for each, in the order of the form.
template <class Searched, class Visit>
void visit_module_choices(Searched& search, Visit visit) {
  visit("tp", search.tp, "tensor parallel ranks");
  visit("cp", search.cp, "context parallel ranks");
  visit("pp", search.pp, "pipeline stages");
  visit("vpp", search.vpp, "virtual stages of a rank");
  visit("dp", search.dp, "data-parallel lanes");
  visit("ep", search.ep, "expert parallel ranks");
  visit("expert_tp", search.expert_tp, "tensor parallel ranks of an expert; 0: tp");
  visit("ranks", search.ranks, "ranks of its own: how many");
  visit("sp", search.sp, "sequence parallelism over the tensor parallel ranks");
  visit("tp_pieces", search.tp_pieces,
        "pieces of a tensor-parallel product's rows; 1 alone unless given");
  visit("recompute", search.recompute, "activations computed again");
  visit("shard", search.shard, "what is sharded over the data-parallel ranks");
  visit("shard_ranks", search.shard_ranks, "ranks a shard group spans; 0: all data-parallel ones");
  visit("tokens", search.tokens, "how tokens are dealt to context parallel ranks");
  visit("cp_attention", search.cp_attention, "how context parallel ranks attend");
  visit("spread", search.spread, "what an encoder's ranks divide: samples, or single images");
}

template <class Searched, class Visit>
void visit_choices(Searched& search, Visit visit) {
  visit("placement", search.placement, "how the modules share the ranks");
  visit("schedule", search.schedule, "order of the pipeline's work");
  visit("microbatch", search.microbatch, "samples per microbatch and language lane");
  visit("encoder_microbatches", search.encoder_microbatches,
        "colocated before a pipeline: encoder work items a step; 0: one");
  visit("encoder_order", search.encoder_order, "when encoders on the language module's ranks run");
  visit("bridge", search.bridge, "how rows go between grids");
}

}  // namespace polyphony
