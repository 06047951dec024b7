// A layout's step from below, in closed form: what its stages take (shared/screen/stage_price.h), along
// every way that a work and its gradient go. The formulas: shared/screen/bound.h.
#pragma once

#include <vector>

#include "shared/screen/bound.h"
#include "shared/screen/layout_view.h"
#include "shared/screen/stage_price.h"

namespace polyphony {

// One stage, and how far its last gradient has to go.
struct TimedStage {
  StagePrice cost;
  Seconds reach{};       // the smallest work's way here, through the stages of its branch
  Seconds tail{};        // from its last backward on: the reductions of all stages that wait for it
  Seconds through{};     // until the branch's first stage has returned it
  bool unbroken = true;  // every stage before this one waits for it
};
struct TimedBranch {
  std::vector<TimedStage> stages;
  Seconds path{};  // of the smallest work with tokens, forward through all stages
  Seconds back{};  // of its gradient, until the last reduction
  bool visited = false;
};

// What a rank along a pipeline has of one branch.
struct RankWork {
  Seconds lane{}, weights{};
  Seconds reach{}, tail{}, through{}, reduction{};  // of its stages, the least
  bool unbroken = true;
  int stages = 0;
};
// What comes before a branch's first work, and after its last gradient has left it.
struct Around {
  Seconds before{}, after{};
  bool through = true;  // it leaves by the first stage
};

// Views, layers and profile must outlive it.
class LayoutTimes {
 public:
  LayoutTimes(const LayoutViews& views, const StackLayers& layers, const HardwareProfile& profile)
      : views_(views), costs_(layers, profile) {}
  // Its footprint is left empty.
  Bound bound(const LayoutView& view);
  // One branch's times alone.
  void add_part(const LayoutView& view, std::size_t branch, PartBound& part);

 private:
  void start(const LayoutView& view);
  void time_branch(const LayoutView& view, std::size_t branch);
  RankWork on_rank(const RankMoments& rank, std::size_t branch) const;
  template <class Visit>
  void each_work(const LayoutView& view, std::size_t branch, Visit visit) const;
  Seconds end_of_branch(const LayoutView& view, std::size_t branch, const Around& around) const;
  Seconds end_of_fills(const LayoutView& view, Seconds before, int fills) const;
  Seconds end_of_paths(const LayoutView& view) const;
  struct Beside {
    Seconds forward{}, backward{}, reduction{};
    int works = 0;
  };
  Beside beside(const LayoutView& view, const RankMoments& rank) const;
  Seconds end_on_shared(const LayoutView& view) const;
  bool coupled(const LayoutView& view, std::size_t branch) const;

  const LayoutViews& views_;
  StagePrices costs_;
  std::vector<TimedBranch> timed_;
  std::vector<char> splits_;       // by branch
  std::vector<LayerTimes> times_;  // by stage of the part in hand
};

}  // namespace polyphony
