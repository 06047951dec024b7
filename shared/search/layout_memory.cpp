#include "shared/search/layout_memory.h"

#include <algorithm>

namespace polyphony {

// The most that a rank holds at a moment.
Bytes LayoutMemory::held(const LayoutView& view, const RankMoments& rank) {
  const std::size_t count = rank.stages.size();
  if (stages_.size() < count) stages_.resize(count);
  Bytes fixed = memories_.standing(view, rank);
  bool alike = true;
  for (std::size_t i = 0; i < count; ++i) {
    const StageOfBranch stage = rank.stages[i];
    memories_.memory(view, stage, !leads(view, rank, stage.branch), stages_[i]);
    fixed += stages_[i].fixed;
    alike = alike && stages_[i].works.size() == 1;
  }
  if (!alike) return fixed + held_in_turn(view, rank);
  Bytes most{};
  for (const TurnMoment& moment : rank.moments) {
    Bytes bytes =
        stages_[moment.running].works.front().transient[static_cast<std::size_t>(moment.kind)];
    for (std::size_t i = 0; i < count; ++i) {
      const WorkMemory& work = stages_[i].works.front();
      const InFlight& flight = moment.held[i];
      bytes += work.tape * std::int64_t{flight.tapes} +
               work.weights * std::int64_t{flight.weights} - work.kept * std::int64_t{flight.both};
    }
    most = std::max(most, bytes);
  }
  return fixed + most;
}

// Works that differ: turn after turn.
Bytes LayoutMemory::held_in_turn(const LayoutView& view, const RankMoments& rank) const {
  Bytes now{}, most{};
  for (const Turn& turn : rank.turns) {
    const auto at =
        static_cast<std::size_t>(std::lower_bound(rank.stages.begin(), rank.stages.end(),
                                                  StageOfBranch{turn.branch, turn.stage}) -
                                 rank.stages.begin());
    const std::vector<WorkMemory>& kinds = stages_[at].works;
    const BranchLoad& load = *view.branches[turn.branch].load;
    const WorkMemory& work = kinds.size() == 1
                                 ? kinds.front()
                                 : kinds[load.kind_of[static_cast<std::size_t>(turn.work)]];
    if (turn.kind == TurnKind::forward) now += work.tape;
    if (turn.kind == TurnKind::backward_input) now += work.weights - work.kept;
    most = std::max(most, now + work.transient[static_cast<std::size_t>(turn.kind)]);
    if (turn.kind == TurnKind::backward) now -= work.tape;
    if (turn.kind == TurnKind::backward_input) now -= work.tape - work.kept;
    if (turn.kind == TurnKind::backward_weight) now -= work.weights;
  }
  return most;
}

Bytes LayoutMemory::of_branch(const LayoutView& view, std::size_t branch) {
  memories_.start(view);
  Bytes most{};
  for (const RankMoments& rank : *view.ranks) {
    const auto is_of = [&](const StageOfBranch& stage) { return stage.branch == branch; };
    const auto own = std::count_if(rank.stages.begin(), rank.stages.end(), is_of);
    if (own == 0) continue;
    Bytes bytes{};
    if (own == std::ssize(rank.stages)) {
      bytes = held(view, rank);
    } else {
      for (const StageOfBranch& stage : rank.stages)
        if (is_of(stage)) {
          StageMemory held;
          memories_.memory(view, stage, true, held);
          bytes += held.fixed;
        }
    }
    most = std::max(most, bytes);
  }
  return most;
}

Footprint LayoutMemory::worst(const LayoutView& view) {
  memories_.start(view);
  Footprint worst;
  const RankMoments* of = nullptr;
  for (const RankMoments& rank : *view.ranks) {
    if (rank.stages.empty()) continue;
    const Bytes memory = held(view, rank);
    if (of != nullptr && memory <= worst.memory) continue;
    worst.memory = memory;
    of = &rank;
  }
  for (const StageOfBranch& stage : of->stages) {  // of virtual stages the first
    if (&stage != of->stages.data() && (&stage)[-1].branch == stage.branch) continue;
    worst.worst += (worst.worst.empty() ? "" : " + ") + views_.stage_name(view, stage);
  }
  return worst;
}

}  // namespace polyphony
