// How many rows and query-key pairs the layers of a module process. WorkSize counts what enters a
// module; some layers see more rows, or fewer pairs. With n patches per image:
//   class token  adds one row per image from patch_embedding to the last block: (n + 1)² pairs
//   windows      blocks that attend inside windows: Σ over windows of (patches in the window)²
//                pairs (for language modules, counted with the mask in shared/program/work.cpp)
// Images are cut into windows from the upper left; the windows at the right and lower edges may be
// smaller. Source: own count.
#pragma once

#include "shared/model/model.h"
#include "shared/patch_grid.h"
#include "shared/work/work_size.h"

namespace polyphony {

// Returns the number of rows that the layers before `layer_end` output for the whole microbatch,
// before it is split over ranks.
std::int64_t rows_leaving(const Module& module, int layer_end, const WorkSize& size);
// Returns whether each image has a class-token row in the output of the layers before `layer_end`.
bool has_class_rows(const Module& module, int layer_end);
// Returns `size` as one layer of the stack sees it: its input rows (patch_embedding: patches;
// encoder_norm: its output rows) and its pairs.
WorkSize layer_size(const Module& module, int layer, const WorkSize& size);
// Returns whether a block (0: the first) attends over whole sequences, not inside windows.
bool sees_all(const Module& module, int block);
// Returns the pairs of one image inside windows; 0 for a module without windows.
std::int64_t window_pairs(const Module& module, PatchGrid image);

}  // namespace polyphony
