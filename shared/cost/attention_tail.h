// The tail of an attention kernel: idle processors at the end of a launch whose query tiles have
// unequal numbers of keys.
//
// A thread block processes one tile of queries and one head. Blocks are assigned in order (tiles
// fastest, then heads) to the processor that is free first, kBlocksAtOnce at a time on each. The
// launch ends when its last block ends. If few heads are launched at a time
// (SoftwareStack::key_heads_a_launch, ModuleLayout::cp_heads), tiles of unequal length leave
// processors idle; splitting long rows (ModuleLayout::row_split) reduces this.
//
// Models the forward pass only. In a backward pass a thread block processes a tile of keys, and a
// context-parallel rank has the keys of all ranks, whichever queries it was assigned. Not modeled:
// windows; the memory traffic of combining the results of split rows, whose ratio to the arithmetic
// is about 1 / row_split. Source: Cornstarch (ICML 2026, §3.2.2, table 3) measures that balancing
// tiles alone is slower.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "shared/hardware/hardware.h"
#include "shared/program/program.h"
#include "shared/work/token_mask.h"

namespace polyphony {

inline constexpr std::int64_t kQueryTile = 128;  // rows; FlashAttention's and Cornstarch's kernels
inline constexpr int kBlocksAtOnce = 2;  // per processor; assumption: registers suffice for two

// Returns, for each tile of kQueryTile of the given rows, the number of keys that at least one of
// its rows attends to.
std::vector<double> query_tiles(const std::vector<Rectangle>& mask, std::span<const Interval> rows);

// Returns the duration of a launch divided by its duration if the work were spread evenly over all
// places for blocks; at least 1.
//   tiles   number of keys of each tile, in the order of the launch
//   heads   number of heads in one launch
//   places  number of blocks that the device runs at a time
double launch_tail(const std::vector<double>& tiles, int heads, int places, int row_split);

// Returns true if the stack or the layout launches only some heads at a time and the number of
// processors of the device is known.
bool has_tail(const HardwareProfile& profile, const Module& module, const ModuleLayout& layout);
// Returns launch_tail() of the forward attention of a compute op; 1 if has_tail() is false.
double attention_tail(const Program& program, const Compute& compute,
                      const HardwareProfile& profile);

}  // namespace polyphony
