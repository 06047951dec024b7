// Whether each block of a module becomes a chunk of its own.
//   It does where gradients or parameters are sharded (ZeRO-2, ZeRO-3). There, parameters are
//   gathered or gradients are reduce-scattered for every microbatch. With one chunk per block, at
//   most one block's gathered values or unsharded gradients are resident, plus one block in
//   transfer. Otherwise the unsharded gradients of a whole stage would be resident in addition to
//   the shards.
#pragma once

#include "shared/model/layout.h"

namespace polyphony {

constexpr bool cut_by_blocks(Shard shard) { return shard >= Shard::gradients; }

}  // namespace polyphony
