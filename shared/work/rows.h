// How many rows and query-key pairs the layers of a module work on. WorkSize counts what enters a
// module; some layers see more rows, or fewer pairs. n patches an image:
//   class token  from patch_embedding to the last block, one row more an image: (n + 1)² pairs
//   windows      blocks that do not see whole images: Σ over windows of (its patches)² pairs (those
//                of a language module are counted with its mask, shared/program/work.cpp)
// Images are squares, cut into windows from the upper left; those at the right and lower edges may
// be smaller. Source: own count.
#pragma once

#include "shared/model/model.h"
#include "shared/work/work_size.h"

namespace polyphony {

// Rows that leave the layers before `layer_end`; of the whole work, before any cut over ranks.
std::int64_t rows_leaving(const Module& module, int layer_end, const WorkSize& size);
// Whether each image has a row of a class token then.
bool has_class_rows(const Module& module, int layer_end);
// `size` as one layer of the stack sees it: rows that enter it (patch_embedding: patches;
// encoder_norm: rows that leave it) and pairs.
WorkSize layer_size(const Module& module, int layer, const WorkSize& size);
// Whether a block (0: the first) attends over whole sequences, not inside windows.
bool sees_all(const Module& module, int block);
// Of one image; 0 for a module without windows.
std::int64_t window_pairs(const Module& module, std::int64_t patches);
// Patches along a side of a square image.
std::int64_t square_side(std::int64_t patches);

}  // namespace polyphony
