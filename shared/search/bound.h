// The fastest answer: a lower bound of the step time and an estimate of the memory of the worst
// stage, in closed form, without a Program.
//   stage s of the chain encoder … language:   step ≥ reach(s) + work(s) + max over stages s' ≤ s
//   of (return(s → s') + reduction(s')) + scalars + update
//     reach     the smallest work item's forward through the stages before s, and its messages
//     work      all forwards, recomputations and backwards of the lane with most tokens
//     return    (not where weight parts are turns of their own) the smallest work item's backward from s down to s', and its messages
//   Colocated: a rank's work is the encoder's and one language stage's; the pipeline's bubble is
//   counted when the encoder runs once a step.
// Priced by the same functions as price(), so that bound ≤ estimate ≤ simulate. Memory: parameters,
// gradients, optimizer state, the tapes in flight (shared/layers/sizes.h), largest work item first;
// boundaries and receive slots; not the allocator's or the network library's reserve. Ignores:
// links shared by several transfers, waiting for lanes with other work than the busiest; what edges
// bring inner layers; of encoders with windows every block counts as the cheapest, of a LoRA module
// as the first. Source: own count.
#pragma once

#include <memory>
#include <string>

#include "shared/hardware/hardware.h"
#include "shared/scenario/scenario.h"

namespace polyphony {

struct Footprint {
  Bytes memory{};     // of the worst stage's rank
  std::string worst;  // that stage: "language stage 0"
  bool operator==(const Footprint&) const = default;
};
struct Bound {
  Seconds step{};
  Seconds busiest{};  // work of the busiest stage, the rest being bubble, messages, reduction and
                      // update
  Footprint footprint;
  bool operator==(const Bound&) const = default;
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

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace polyphony
