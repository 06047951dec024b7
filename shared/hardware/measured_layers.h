// Measured times of layers, which replace what the cost model computes from their kernels. They
// come from a profiler's own runs, or are published ("layer_times" in scenarios and profiles).
//   time of a part = constant + per_token · x + per_token_squared · x²,  with x the rows of the
//   microbatch on one rank (WorkSize::tokens); zero for a microbatch without rows. No coefficient
//   is negative, so more rows never take less time (lower bounds use the fewest rows).
//   backward = backward_weight if the layer trains + backward_input if something strictly upstream
//   of it trains + forward again if it is recomputed (shared/chunk/expand_layer.h)
// The time includes collectives inside the layer. It does not include an op's overhead and messages
// between stages.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "shared/enum_names.h"
#include "shared/model/model.h"
#include "shared/units.h"
#include "shared/work/work_size.h"

namespace polyphony {

struct MeasuredTime {
  Seconds constant{}, per_token{}, per_token_squared{};
  Seconds of(std::int64_t tokens) const;
  bool operator==(const MeasuredTime&) const = default;
};

// Which layers an entry describes: blocks, the layer before them (an embedding), or the layer after
// them (a last norm, a head).
enum class MeasuredPart : std::uint8_t { blocks, input, output };
constexpr auto names(MeasuredPart) { return names_of<MeasuredPart>("each", "input", "output"); }

struct MeasuredLayers {
  MeasuredPart part = MeasuredPart::blocks;
  int first = 0, last = -1;  // blocks [first, last), counted from 0; last -1: to the end
  // The times are those of all these layers together, of which each block takes an equal part. They
  // include the layer before the blocks if the range begins at block 0, and the layer after them if
  // it ends with the last block.
  bool stage = false;
  int tp = 0, cp = 0;  // degrees of parallelism that it is valid for; 0: any
  MeasuredTime forward, backward_input, backward_weight;
  bool operator==(const MeasuredLayers&) const = default;
};
// Entries by module name. If several entries name a layer, the first one counts.
using MeasuredModules = std::map<std::string, std::vector<MeasuredLayers>>;

// The measured times of one layer: `share` times those of an entry.
struct MeasuredLayer {
  const MeasuredLayers* times = nullptr;
  double share = 1;
};
// Returns the times of the layer at a position of the module's stack, or nothing if it was not
// measured.
std::optional<MeasuredLayer> measured_layer(const MeasuredModules& modules, const Module& module,
                                            int position, int tp, int cp);

}  // namespace polyphony
