// What a launch of attention waits for at its end: its longest rows. A thread block takes the rows of a
// tile of queries to the keys that they see, one head of it; blocks go to the device's processors in
// order (tiles fastest, then heads), kBlocksAtOnce on each, to the one that is free first, and the launch is over when
// the last is. Where heads are launched few at a time (SoftwareStack::key_heads_a_launch, ModuleLayout::cp_heads)
// rows of unequal length leave processors idle; a split of long rows (ModuleLayout::row_split) evens them out.
// Forward only: the backward's blocks are keys, of which a rank has those of all ranks; windows are
// not looked at; nor is the traffic of joining pieces, 1/keys-a-piece of the arithmetic's.
// Source: papers' measurements that even tiles alone are slower, Cornstarch (ICML 2026, §3.2.2, table 3).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "shared/hardware/hardware.h"
#include "shared/program/program.h"
#include "shared/work/token_mask.h"

namespace polyphony {

inline constexpr std::int64_t kQueryTile = 128;  // of FlashAttention and of Cornstarch's kernel
inline constexpr int kBlocksAtOnce = 2;          // on a processor; assumed: registers allow two

// Keys that some row sees, of each tile of these rows of a mask's axis, in their order.
std::vector<double> query_tiles(const std::vector<Rectangle>& mask, std::span<const Interval> rows);

// Lasts so many times what its work would, spread evenly over all places for blocks: at least 1.
//   tiles: keys of each, in the order of launch; heads: in one launch.
double launch_tail(const std::vector<double>& tiles, int heads, int places, int row_split);

// Whether heads are launched few at a time, by the stack or the layout, on processors that are known.
bool has_tail(const HardwareProfile& profile, const Module& module, const ModuleLayout& layout);
// Of the forward attention of a language chunk; 1 where it has none.
double attention_tail(const Program& program, const Compute& compute,
                      const HardwareProfile& profile);

}  // namespace polyphony
