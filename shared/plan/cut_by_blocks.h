// Where a module's parameters or gradients move for every work, its chunks are blocks: of values that
// are gathered, and of whole gradients on their way to be divided, no more than a block is there
// (and one on its way). Else a stage's whole gradients would stay beside the shares of them.
#pragma once

#include "shared/model/layout.h"

namespace polyphony {

constexpr bool cut_by_blocks(Shard shard) { return shard >= Shard::gradients; }

}  // namespace polyphony
