// The least that a collective or a message can take where its ranks lie: prices of
// shared/cost/collectives.h and of messages, less what flows are rounded by. Rings are remembered by
// where they lie.
#pragma once

#include "shared/cost/collectives.h"
#include "shared/hardware/hardware.h"
#include "shared/model/layout.h"
#include "shared/screen/known.h"

namespace polyphony {

// Cluster and profile must outlive it.
class LeastTimes {
 public:
  LeastTimes(const Cluster& cluster, const HardwareProfile& profile)
      : cluster_(cluster), profile_(profile) {}

  // Over `count` ranks, `stride` apart, from `first` on.
  Seconds least_time(int first, int count, int stride, CollectiveKind kind, Bytes bytes);
  // The quickest of the rings of `count` ranks that lie so in the grid, one after another, all at
  // work.
  Ring least(const ModuleLayout& grid, int count, int stride, const ExpertChoice& choices) const;
  // From a stage of the grid to the next; from one branch to another.
  Seconds least_message(const ModuleLayout& grid, Bytes bytes) const;
  Seconds crossing() const;
  Seconds scalars(int ranks);  // all-reduce of the step's scalars

 private:
  const Ring& ring(int first, int count, int stride);

  const Cluster& cluster_;
  const HardwareProfile& profile_;
  Known<Ring> rings_;
  Known<Seconds> scalars_;
  Key key_;
};

}  // namespace polyphony
