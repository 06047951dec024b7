// A lower bound of a layout's step time, in closed form: the times of its stages
// (shared/screen/stage_price.h), added up along every path that a microbatch and its gradient take.
// The formulas are in shared/screen/bound.h.
#pragma once

#include <vector>

#include "shared/screen/bound.h"
#include "shared/screen/layout_view.h"
#include "shared/screen/stage_price.h"

namespace polyphony {

// One stage, and the times before its first and after its last action.
struct TimedStage {
  StagePrice cost;
  Seconds reach{};       // of the smallest microbatch to arrive here, through the stages before
  Seconds tail{};        // after its last backward: reductions of all stages that wait for it
  Seconds through{};     // until the branch's first stage has returned the gradient
  bool unbroken = true;  // every stage before this one waits for it
};
struct TimedBranch {
  std::vector<TimedStage> stages;
  Seconds path{};  // of the smallest microbatch with tokens, forward through all stages
  Seconds back{};  // of its gradient, until the last reduction
  bool visited = false;
};

// The times of one branch on a rank along a pipeline.
struct RankWork {
  Seconds lane{}, weights{};
  Seconds reach{}, tail{}, through{}, reduction{};  // the least of its stages
  bool unbroken = true;
  int stages = 0;
};
// Times before a branch's first microbatch, and after its last gradient has left it.
struct Around {
  Seconds before{}, after{};
  bool through = true;  // the gradient leaves by the first stage
};

// Views, layers and profile must outlive it.
class LayoutTimes {
 public:
  LayoutTimes(const LayoutViews& views, const StackLayers& layers, const HardwareProfile& profile)
      : views_(views), costs_(layers, profile) {}
  // Returns the bound of the step time; its footprint is empty.
  Bound bound(const LayoutView& view);
  // Sets the times of `part`: those of one branch alone.
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
  struct Colocated {
    Seconds forward{}, backward{}, reduction{};
    int works = 0;
  };
  Colocated colocated(const LayoutView& view, const RankMoments& rank) const;
  Seconds end_on_shared(const LayoutView& view) const;
  bool coupled(const LayoutView& view, std::size_t branch) const;

  const LayoutViews& views_;
  StagePrices costs_;
  std::vector<TimedBranch> timed_;
  std::vector<char> splits_;       // by branch
  std::vector<LayerTimes> times_;  // by stage of the current part
};

}  // namespace polyphony
