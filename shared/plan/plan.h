// From a layout to stages on ranks: which layers each pipeline stage holds, and which ranks run it.
// Made once per (model, layout).
//   A branch is one pipeline: the encoder's (vision and projector), the language module's, or all
//   of them when homogeneous. Consecutive stages, and consecutive branches, are joined by a
//   boundary: rows are redistributed from the producer's ranks to the consumer's (identity between
//   stages of one branch).
#pragma once

#include <optional>
#include <vector>

#include "shared/error.h"
#include "shared/scenario.h"

namespace polyphony {

struct Chunk {
  ModuleId module;
  LayerRange layers;
  bool operator==(const Chunk&) const = default;
};
struct Stage {
  std::vector<Chunk> chunks;  // in order; one forward of the stage runs them all
  bool operator==(const Stage&) const = default;
};
struct Branch {
  ModuleLayout grid;
  std::vector<Stage> stages;  // by pipeline index in the grid
  int microbatches = 1;       // work items per lane and step
};
struct Plan {
  std::vector<Branch>
      branches;  // data flows from each to the next; the last holds the language module
};

// Why the layout is not legal for this scenario, or nothing. Names the nearest legal values. Checks
// grids, tiling of the world, divisibility, the batch, and what no runner of this version supports.
std::optional<Infeasible> check_layout(const Scenario& scenario, const Layout& layout);
// Why the executor cannot run what the simulator can ("simulation only"), or nothing.
std::optional<Infeasible> check_runnable(const Scenario& scenario, const Layout& layout);

Plan make_plan(const Scenario& scenario, const Layout& layout);

}  // namespace polyphony
