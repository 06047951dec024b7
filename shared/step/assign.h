// Assigns the samples, items and tokens of a batch to works (Work in shared/program/program.h), and
// computes how large each is for each module.
//   Language module: the samples of the batch are cut, in order, into microbatches × lanes runs of
//   equal counts (± 1). Its tokens are divided over context-parallel ranks by shared/step/tokens.h.
//
//   Encoders: a work holds the items (images, clips, latents) of the language microbatches that it
//   feeds. They are divided over the encoder's lanes by sample, or item by item
//   (Spread::images: the largest first, each to the lane and context-parallel rank with the least
//   work so far). Context-parallel ranks of an encoder get whole items in the same way, or each of
//   them all items of its lane (Spread::copied).
//
//   Sub-microbatches: if an encoder has several works per microbatch, the microbatch's items are
//   divided over ⌈items / ModuleLayout::sub_microbatch⌉ of them, at most all; the others are empty.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "shared/plan/plan.h"
#include "shared/program/work.h"
#include "shared/step/tokens.h"

namespace polyphony {

// Returns the FLOPs that a balanced assignment of tokens balances: those of the forward pass
// through a language module's blocks.
TokenCosts token_costs(const Module& module);

// Returns the work table of a batch.
WorkTable assign_work(const Model& model, const Plan& plan, const Batch& batch);

// Does the same with an assignment of samples that the caller (a planner) provides: for a branch
// and the index of one of its microbatches, the samples on each lane, as ascending positions in the
// batch. Samples without items for a branch other than the language module's are skipped.
using Members = std::vector<std::uint32_t>;
using SampleAssignment = std::function<std::vector<Members>(std::size_t branch, int index)>;
WorkTable assign_work(const Model& model, const Plan& plan, const Batch& batch,
                      const SampleAssignment& assignment);

}  // namespace polyphony
