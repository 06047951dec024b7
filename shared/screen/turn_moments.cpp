#include "shared/screen/turn_moments.h"

#include <algorithm>

namespace polyphony {
RankMoments moments_of(const Turns& turns) {
  RankMoments rank;
  for (const Turn& turn : turns) {
    const StageOfBranch stage{turn.branch, turn.stage};
    if (std::find(rank.stages.begin(), rank.stages.end(), stage) == rank.stages.end())
      rank.stages.push_back(stage);
  }
  std::sort(rank.stages.begin(), rank.stages.end());
  std::vector<InFlight> now(rank.stages.size());
  // By running stage and kind: what is kept so far.
  std::vector<std::vector<TurnMoment>> kept(4 * rank.stages.size());
  for (const Turn& turn : turns) {
    const auto at =
        static_cast<std::size_t>(std::lower_bound(rank.stages.begin(), rank.stages.end(),
                                                  StageOfBranch{turn.branch, turn.stage}) -
                                 rank.stages.begin());
    InFlight& here = now[at];
    if (turn.kind == TurnKind::forward) ++here.tapes;
    if (turn.kind == TurnKind::backward_input) ++here.weights, ++here.both, rank.splits = true;
    std::vector<TurnMoment>& list = kept[4 * at + static_cast<std::size_t>(turn.kind)];
    if (std::none_of(list.begin(), list.end(),
                     [&](const TurnMoment& m) { return covers(m.held, now); })) {
      std::erase_if(list, [&](const TurnMoment& m) { return covers(now, m.held); });
      list.push_back({static_cast<std::uint16_t>(at), turn.kind, now});
    }
    if (turn.kind == TurnKind::backward) --here.tapes;
    if (turn.kind == TurnKind::backward_input) --here.tapes, --here.both;
    if (turn.kind == TurnKind::backward_weight) --here.weights;
  }
  for (std::vector<TurnMoment>& list : kept)
    rank.moments.insert(rank.moments.end(), list.begin(), list.end());
  return rank;
}

}  // namespace polyphony
