#include "shared/screen/action_moments.h"

#include <algorithm>

namespace polyphony {
RankMoments moments_of(const Actions& actions) {
  RankMoments rank;
  for (const Action& action : actions) {
    const StageOfBranch stage{action.branch, action.stage};
    if (std::find(rank.stages.begin(), rank.stages.end(), stage) == rank.stages.end())
      rank.stages.push_back(stage);
  }
  std::sort(rank.stages.begin(), rank.stages.end());
  std::vector<InFlight> now(rank.stages.size());
  // The moments kept so far, by running stage and kind.
  std::vector<std::vector<ActionMoment>> kept(4 * rank.stages.size());
  for (const Action& action : actions) {
    const auto at =
        static_cast<std::size_t>(std::lower_bound(rank.stages.begin(), rank.stages.end(),
                                                  StageOfBranch{action.branch, action.stage}) -
                                 rank.stages.begin());
    InFlight& here = now[at];
    if (action.kind == ActionKind::forward) ++here.tapes;
    if (action.kind == ActionKind::backward_input) ++here.weights, ++here.both, rank.splits = true;
    std::vector<ActionMoment>& list = kept[4 * at + static_cast<std::size_t>(action.kind)];
    if (std::none_of(list.begin(), list.end(),
                     [&](const ActionMoment& m) { return covers(m.held, now); })) {
      std::erase_if(list, [&](const ActionMoment& m) { return covers(now, m.held); });
      list.push_back({static_cast<std::uint16_t>(at), action.kind, now});
    }
    if (action.kind == ActionKind::backward) --here.tapes;
    if (action.kind == ActionKind::backward_input) --here.tapes, --here.both;
    if (action.kind == ActionKind::backward_weight) --here.weights;
  }
  for (std::vector<ActionMoment>& list : kept)
    rank.moments.insert(rank.moments.end(), list.begin(), list.end());
  return rank;
}

}  // namespace polyphony
