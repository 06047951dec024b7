// Which samples, items and tokens each work item holds, and how large it is for each module.
//   Samples of the batch are cut into microbatches × lanes runs of equal counts (± one), in order.
//   Encoders: the items (images, clips, latents) of the language microbatches that the work item
//   feeds, over the encoder's lanes by sample, or one by one (Spread::images: the largest first, to
//   the lane and context with the least). Context parallelism: encoders deal whole items likewise;
//   the language module deals tokens (shared/step/tokens.h).
//   Sub-microbatches: several works of a microbatch take its items, or a lane's, likewise, ⌈items /
//   ModuleLayout::sub_microbatch⌉ of them, at most all; the others have nothing to do.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "shared/plan/plan.h"
#include "shared/program/work.h"
#include "shared/step/tokens.h"

namespace polyphony {

// What balanced deals of tokens weigh: of the forwards of a language module's blocks.
TokenCosts token_costs(const Module& module);

WorkTable assign_work(const Model& model, const Plan& plan, const Batch& batch);

// As somebody else deals samples: positions in the batch, ascending, by lane of a work of a branch.
// Those without items of a branch other than the language module's are passed over.
using Members = std::vector<std::uint32_t>;
using SampleDeal = std::function<std::vector<Members>(std::size_t branch, int index)>;
WorkTable assign_work(const Model& model, const Plan& plan, const Batch& batch,
                      const SampleDeal& deal);

}  // namespace polyphony
