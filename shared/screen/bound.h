// Lower bounds of the step time and of the memory of the worst rank, in closed form, for any layout
// that check_layout() accepts. No Program is made; this is the fastest prediction.
//
// Step time. For every rank along a pipeline:  step ≥ reach + work + tail + scalars + update
//     reach   the forward of the smallest microbatch through the stages before, and its messages;
//             through another branch as well, if every microbatch waits for one of that branch
//     work    all forwards, recomputations and backwards of the busiest column (a data-parallel
//             lane and context-parallel rank, branch_loads.h), over all virtual stages
//     tail    the backward of the smallest microbatch through the stages before, as far as
//             gradients return, and the reduction that ends last. If weight parts are actions of
//             their own, the last gradient returns before the last weight part.
//   Also, step ≥ the gathers and reductions of a rank's sharded modules one after another.
//   For encoders on the language module's ranks, the work of a rank is theirs and that of one
//   language stage; the pipeline fills and drains once for each of their microbatches.
//
// Times are computed by the same functions as in price(), so that bound ≤ estimate ≤ simulate. Not
// modeled: links shared by several transfers; waiting for lanes with other work than the busiest;
// rows that edges bring to inner layers.
//
// Memory: parameters, gradients, optimizer state, saved activations in flight and temporary memory
// of the running ops, as lowering counts them for the profile's software stack. stage_memory.h
// lists what is omitted. The reserves of the allocator and of the network library are not included.
// Source: own count.
#pragma once

#include <memory>
#include <string>

#include "shared/hardware/hardware.h"
#include "shared/scenario/scenario.h"

namespace polyphony {

struct Footprint {
  Bytes memory{};     // lower bound for the rank of the worst stage
  std::string worst;  // name of that stage: "language stage 0"
  // Lower bound for the rank that needs the least memory. Under any other split of the blocks into
  // stages some rank needs at least this much, so that no split fits if this does not.
  Bytes least{};
  bool operator==(const Footprint&) const = default;
};
struct Bound {
  Seconds step{};
  Seconds busiest{};  // work of the busiest stage; the rest of the step is bubble, messages,
                      // reduction and update
  Footprint footprint;
  bool operator==(const Bound&) const = default;
};

// Lower bounds for the ranks of one branch alone, whatever those of other branches do.
struct PartBound {
  Seconds step{};   // the work of its busiest rank
  Seconds least{};  // the least work of any of its ranks
  Bytes memory{};   // of its worst rank
  Bytes always{};   // what each of its ranks holds for this branch at any moment
};

// Computes bounds for many layouts of one scenario and one batch, and remembers what layouts have
// in common. Not thread-safe.
class Screen {
 public:
  Screen(const Scenario& scenario, const HardwareProfile& profile, const Batch& batch);
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  // Return the footprint or the full bound of a layout that check_layout() accepts. A footprint is
  // much cheaper. Most layouts of a search do not fit, so callers should ask for the footprint
  // first.
  Footprint footprint(const Layout& layout);
  // Returns how much tensors of the layout may take on a GPU in a search: the scenario's limit less
  // what libraries take at the least. Zero: there is no limit.
  Bytes room(const Layout& layout) const;
  Bound bound(const Layout& layout);
  // Returns the memory of the rank that holds a stage of the branch with this module.
  Bytes memory(const Layout& layout, ModuleId module, int stage);
  // Returns the bounds of the branch with this module.
  PartBound part(const Layout& layout, ModuleId module);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace polyphony
