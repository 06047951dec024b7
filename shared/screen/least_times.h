// Lower bounds of the times of collectives and messages between given ranks: the prices of
// shared/cost/collectives.h and of messages, less what the rounding of flows may add. Rings are
// remembered by the ranks that they connect.
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

  // Returns the least time of a collective over `count` ranks, `stride` apart, starting at `first`.
  Seconds least_time(int first, int count, int stride, CollectiveKind kind, Bytes bytes);
  // Returns the fastest ring among those of `count` ranks in the grid that follow one another, with
  // all rings active at once.
  Ring least(const ModuleLayout& grid, int count, int stride, const ExpertChoice& choices) const;
  // Return the least time of a message from a stage of the grid to the next, and from one branch to
  // another.
  Seconds least_message(const ModuleLayout& grid, Bytes bytes) const;
  Seconds crossing() const;
  Seconds scalars(int ranks);  // all-reduce of the step's scalars

 private:
  const Ring& ring(int first, int count, int stride);

  const Cluster& cluster_;
  const HardwareProfile& profile_;
  MemoTable<Ring> rings_;
  MemoTable<Seconds> scalars_;
  Key key_;
};

}  // namespace polyphony
