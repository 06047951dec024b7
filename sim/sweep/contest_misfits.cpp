#include "shared/search/least_recompute.h"
#include "sim/sweep/contest.h"

namespace polyphony::sim {

// A Program holds what the screen leaves out: that much less may be seen of the next. Ends, because each
// is seen below the one before.
void Contest::recompute_more(std::size_t misfit) {
  const Candidate& c = candidates_[misfit];
  if (!c.why_not.empty() || c.figures.fits()) return;
  const Bytes unseen = c.figures.peak_memory - c.bound.footprint.memory;
  const Bytes target = question_.scenario.cluster.device.memory - unseen;
  for (const Layout& next :
       polyphony::recompute_more(question_.scenario, space_, c.layout, target, screen_)) {
    Kind kind = standings_[misfit].kind;
    std::get<Recompute>(kind) = next.modules[space_.owners()[space_.language()].value].recompute;
    position(next, screen_.bound(next), kind);
  }
}

}  // namespace polyphony::sim
