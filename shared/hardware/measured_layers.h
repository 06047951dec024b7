// Measured times of layers, in place of what the cost model makes of their kernels: of a profiler's
// own runs, or published ones ("layer_times" in scenarios and profiles).
//   time of a part = constant + per_token · x + per_token_squared · x²,  x the rows of the work item on
//   one rank (WorkSize::tokens); nothing for a work item without rows. No number is negative, so that
//   more rows never take less time (bounds take the fewest).
//   backward = backward_weight where the layer trains + backward_input where something strictly
//   upstream of it does + forward again where it is recomputed (shared/chunk/expand_layer.h)
// What the ranks of a layer say to each other inside it is part of the time; an op's overhead and
// messages between stages are not.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "shared/model/model.h"
#include "shared/units.h"
#include "shared/work/work_size.h"

namespace polyphony {

struct MeasuredTime {
  Seconds constant{}, per_token{}, per_token_squared{};
  Seconds of(std::int64_t tokens) const;
  bool operator==(const MeasuredTime&) const = default;
};

// Which layers an entry is about: blocks, or the layer before them (an embedding), or that after
// them (a last norm, a head).
enum class MeasuredPart : std::uint8_t { blocks, input, output };
constexpr MeasuredPart last_of(MeasuredPart) { return MeasuredPart::output; }
const char* name(MeasuredPart part);

struct MeasuredLayers {
  MeasuredPart part = MeasuredPart::blocks;
  int first = 0, last = -1;  // of the blocks, from 0: [first, last); last -1: to the end
  // The times are of all these layers together, with the embedding where they begin at block 0 and
  // what follows the blocks where they end with the last: each block takes an equal part.
  bool stage = false;
  int tp = 0, cp = 0;  // grids that it holds for; 0: any
  MeasuredTime forward, backward_input, backward_weight;
  bool operator==(const MeasuredLayers&) const = default;
};
// By the module's name; of several entries that name a layer the first holds.
using MeasuredModules = std::map<std::string, std::vector<MeasuredLayers>>;

// What one layer takes, of any part that runs.
struct MeasuredLayer {
  const MeasuredLayers* times = nullptr;
  double share = 1;  // of the times
};
// Of the layer at a position of the module's stack; nothing where it was not measured.
std::optional<MeasuredLayer> measured_layer(const MeasuredModules& modules, const Module& module,
                                            int position, int tp, int cp);

}  // namespace polyphony
