// The fastest answer: a lower bound of the step time and of the memory of the worst stage, in closed
// form, without a Program, of any layout that check_layout() accepts.
//   Of every rank along a pipeline:  step ≥ reach + work + tail + scalars + update
//     reach   the smallest work item's forward through the stages before, and its messages; from
//             another branch where every work waits for one of it
//     work    all forwards, recomputations and backwards of the busiest column (branch_loads.h), of
//             all virtual stages
//     tail    the smallest work item's backward through the stages before, as far as gradients
//             return, and the reduction that ends last; where weight parts are actions of their own
//             the last gradient returns before the last of them
//   and ≥ the gathers and sums of its sharded modules one after another.
//   Encoders on the language module's ranks: a rank's work is theirs and one language stage's; the
//   pipeline fills and drains once for each of their works.
// Priced by the same functions as price(), so that bound ≤ estimate ≤ simulate. Memory: parameters,
// gradients, optimizer state, tapes in flight, what running ops hold besides, as lowering counts
// them for the profile's software stack (stage_memory.h says what is left out); not the allocator's
// or the network library's reserve. Times ignore: links shared by several transfers,
// waiting for lanes with other work than the busiest; what edges bring inner layers. Source: own
// count.
#pragma once

#include <memory>
#include <string>

#include "shared/hardware/hardware.h"
#include "shared/scenario/scenario.h"

namespace polyphony {

struct Footprint {
  Bytes memory{};     // of the worst stage's rank, at least
  std::string worst;  // that stage: "language stage 0"
  Bytes
      least{};  // of the rank that needs least: however blocks like these are split, some rank needs it
  bool operator==(const Footprint&) const = default;
};
struct Bound {
  Seconds step{};
  Seconds busiest{};  // work of the busiest stage, the rest being bubble, messages, reduction and
                      // update
  Footprint footprint;
  bool operator==(const Bound&) const = default;
};

// What the ranks of one branch need at least, whatever those of other branches do.
struct PartBound {
  Seconds step{};   // its busiest rank's work
  Seconds least{};  // the work of any of its ranks
  Bytes memory{};   // of its worst rank
  Bytes always{};   // what each of its ranks holds of it at any moment
};

// Screens many layouts of one scenario on one batch; remembers what layouts have in common. Not for
// several threads.
class Screen {
 public:
  Screen(const Scenario& scenario, const HardwareProfile& profile, const Batch& batch);
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  // Need a layout that check_layout() accepts. Footprints are much cheaper: most layouts of a
  // search do not fit, ask for theirs first.
  Footprint footprint(const Layout& layout);
  Bound bound(const Layout& layout);
  // Of the rank that holds a stage of the branch that holds the module.
  Bytes memory(const Layout& layout, ModuleId module, int stage);
  // Of the branch that holds the module.
  PartBound part(const Layout& layout, ModuleId module);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace polyphony
