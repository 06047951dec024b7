#include "shared/screen/layout_memory.h"

#include <algorithm>

namespace polyphony {

// Returns the most that a rank holds at any moment.
Bytes LayoutMemory::held(const LayoutView& view, const RankMoments& rank,
                         std::optional<std::size_t> part) {
  const std::size_t count = rank.stages.size();
  if (stages_.size() < count) stages_.resize(count);
  const bool whole = std::all_of(rank.stages.begin(), rank.stages.end(), [&](StageOfBranch stage) {
    return !part || stage.branch == *part;
  });
  Bytes fixed = whole ? memories_.standing(view, rank) : Bytes{};
  bool alike = true;
  for (std::size_t i = 0; i < count; ++i) {
    const StageOfBranch stage = rank.stages[i];
    if (part && stage.branch != *part) {
      stages_[i] = {{}, {WorkMemory{}}};
    } else {  // for a part, the smallest work represents all
      set_stage(view, rank, i,
                !leads(view, rank, stage.branch) ||
                    (part && view.branches[*part].load->counts.size() > 1));
    }
    fixed += stages_[i].fixed;
    alike = alike && stages_[i].works.size() == 1;
  }
  known_ = rank.stages;
  return fixed + (alike ? at_moments(rank) : held_in_action(view, rank));
}

void LayoutMemory::set_stage(const LayoutView& view, const RankMoments& rank, std::size_t i,
                             bool least) {
  const StageOfBranch stage = rank.stages[i];
  if (i < known_.size() && memories_.alike(view, known_[i], stage)) return;
  memories_.memory(view, stage, least, stages_[i]);
}

Bytes LayoutMemory::at_moments(const RankMoments& rank) const {
  const std::size_t count = rank.stages.size();
  Bytes most{};
  for (const ActionMoment& moment : rank.moments) {
    Bytes bytes =
        stages_[moment.running].works.front().transient[static_cast<std::size_t>(moment.kind)];
    for (std::size_t i = 0; i < count; ++i) {
      const WorkMemory& work = stages_[i].works.front();
      const InFlight& flight = moment.held[i];
      bytes += work.tape * std::int64_t{flight.tapes} +
               work.weights * std::int64_t{flight.weights} - work.both * std::int64_t{flight.both};
    }
    most = std::max(most, bytes);
  }
  return most;
}

// With encoders in turn, every encoder microbatch is in flight alone, with the same language
// microbatches in flight at the same moments; so are those of the largest work.
std::optional<Bytes> LayoutMemory::held_with_largest(const LayoutView& view,
                                                     const RankMoments& rank, std::size_t largest) {
  const std::size_t count = rank.stages.size();
  if (stages_.size() < count) stages_.resize(count);
  Bytes fixed = memories_.standing(view, rank);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t branch = rank.stages[i].branch;
    set_stage(view, rank, i, branch != largest && !leads(view, rank, branch));
    std::vector<WorkMemory>& works = stages_[i].works;
    if (branch == largest)
      works = {*std::max_element(
          works.begin(), works.end(),
          [](const WorkMemory& a, const WorkMemory& b) { return a.tape < b.tape; })};
    if (works.size() > 1) return {};
    fixed += stages_[i].fixed;
    for (const ActionMoment& moment : rank.moments)
      if (branch == largest && moment.held[i].tapes > 1) return {};
  }
  known_ = rank.stages;
  return fixed + at_moments(rank);
}

Bytes LayoutMemory::with_largest(const LayoutView& view) {
  if (view.layout->encoder_order != EncoderOrder::in_turn) return {};
  Bytes most{};
  for (std::size_t b = 0; b < view.branches.size(); ++b) {
    if (b == view.language || view.branches[b].load->alike ||
        !same_ranks(*view.branches[b].grid, *view.branches[view.language].grid))
      continue;
    start(view);
    std::optional<Bytes> least;  // of any stage's ranks
    for (const RankMoments& rank : *view.ranks) {
      if (rank.stages.empty()) continue;
      const std::optional<Bytes> memory = held_with_largest(view, rank, b);
      least = memory ? std::min(least.value_or(*memory), *memory) : Bytes(0);
      if (!memory) break;
    }
    most = std::max(most, least.value_or(Bytes(0)));
  }
  return most;
}

// Computes the same action by action, for works that differ.
Bytes LayoutMemory::held_in_action(const LayoutView& view, const RankMoments& rank) const {
  Bytes now{}, most{};
  for (const Action& action : views_.actions(rank)) {
    const auto at =
        static_cast<std::size_t>(std::lower_bound(rank.stages.begin(), rank.stages.end(),
                                                  StageOfBranch{action.branch, action.stage}) -
                                 rank.stages.begin());
    const std::vector<WorkMemory>& kinds = stages_[at].works;
    const BranchLoad& load = *view.branches[action.branch].load;
    const WorkMemory& work = kinds.size() == 1
                                 ? kinds.front()
                                 : kinds[load.kind_of[static_cast<std::size_t>(action.work)]];
    if (action.kind == ActionKind::forward) now += work.tape;
    if (action.kind == ActionKind::backward_input) now += work.weights - work.both;
    most = std::max(most, now + work.transient[static_cast<std::size_t>(action.kind)]);
    if (action.kind == ActionKind::backward) now -= work.tape;
    if (action.kind == ActionKind::backward_input) now -= work.tape - work.both;
    if (action.kind == ActionKind::backward_weight) now -= work.weights;
  }
  return most;
}

void LayoutMemory::start(const LayoutView& view) {
  memories_.start(view);
  known_.clear();
}

void LayoutMemory::add_part(const LayoutView& view, std::size_t branch, PartBound& part) {
  start(view);
  bool any = false;
  for (const RankMoments& rank : *view.ranks) {
    if (std::none_of(rank.stages.begin(), rank.stages.end(),
                     [&](const StageOfBranch& of) { return of.branch == branch; }))
      continue;
    const Bytes most = held(view, rank, branch);
    Bytes always{};
    for (std::size_t i = 0; i < rank.stages.size(); ++i) always += stages_[i].fixed;
    part.memory = std::max(part.memory, most);
    part.always = any ? std::min(part.always, always) : always;
    any = true;
  }
}

Bytes LayoutMemory::of(const LayoutView& view, StageOfBranch stage) {
  start(view);
  for (const RankMoments& rank : *view.ranks)
    if (std::binary_search(rank.stages.begin(), rank.stages.end(), stage)) return held(view, rank);
  return {};
}

Footprint LayoutMemory::worst(const LayoutView& view) {
  start(view);
  Footprint worst;
  const RankMoments* of = nullptr;
  for (const RankMoments& rank : *view.ranks) {
    if (rank.stages.empty()) continue;
    const Bytes memory = held(view, rank);
    worst.least = of == nullptr ? memory : std::min(worst.least, memory);
    if (of != nullptr && memory <= worst.memory) continue;
    worst.memory = memory;
    of = &rank;
  }
  for (const StageOfBranch& stage : of->stages) {  // of virtual stages, the first
    if (&stage != of->stages.data() && (&stage)[-1].branch == stage.branch) continue;
    worst.worst += (worst.worst.empty() ? "" : " + ") + views_.stage_name(view, stage);
  }
  worst.memory = std::max(worst.memory, with_largest(view));
  return worst;
}

}  // namespace polyphony
