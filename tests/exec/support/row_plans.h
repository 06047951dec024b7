// Counts the bytes of indices and per-row tables that a chunk keeps from its forward to its
// backward pass. They exist once per chunk and microbatch, not per layer, and are not part of the
// Program's memory (shared/chunk/sizes.h). They are counted from the microbatch's input, with the
// functions that make them.
//   blocks            rotary tables, rows of buckets and where padding is, orders of rows, masks of
//                     a context group; with a balance term the sample of each row
//   token embedding   places of all rows; ids of this rank's part of the table
//   patch embedding   rows of the position table; places of class tokens
//   audio embedding   rows that the second convolution reads
//   encoder norm      with class tokens: the rows that stay
//   projector         the order of merged rows
//   head              labels of this rank's part of the vocabulary; its own loss rows, and with
//                     sequence parallelism what it saves of them beyond an even share (labels are
//                     at the ends of samples)
//   diffusion         features of the items' times
#pragma once

#include "exec/work_input.h"
#include "shared/chunk/expand.h"

namespace polyphony::exec::testing {

// A rank's places in its tensor and context groups.
struct Seat {
  int tensor = 0, context = 0;
};
Bytes row_plan_bytes(const Module& module, LayerRange layers, const WorkInput& data,
                     const ChunkContext& context, const Seat& seat);
// Of these what weight parts wait with (held_for_weights()): of embeddings ids and rows of tables, of
// diffusion modules the features.
Bytes weight_plan_bytes(const Module& module, LayerRange layers, const WorkInput& data,
                        const ChunkContext& context, const Seat& seat);

}  // namespace polyphony::exec::testing
