#include "shared/screen/layout_time.h"

#include <algorithm>
#include <optional>

namespace polyphony {
namespace {

// Allowance for rounding: sums are formed in another order than in the graph.
constexpr double kSlack = 1e-9;

}  // namespace

void LayoutTimes::time_branch(const LayoutView& view, std::size_t b) {
  TimedBranch& branch = timed_[b];
  branch = {};
  const auto place =
      b == view.language ? schedule(view.layout->schedule).place : schedules::round_robin;
  const ModuleLayout& grid = *view.branches[b].grid;
  const auto id = static_cast<std::uint16_t>(b);
  for (std::size_t s = 0; s < view.branches[b].stages->size(); ++s) {
    const auto stage = static_cast<std::uint16_t>(s);
    TimedStage& now = branch.stages.emplace_back();
    const Pipeline shape{grid.pp, grid.vpp};
    const int index = place(shape, stage);
    const bool same = s > 0 && costs_.alike(view, {id, static_cast<std::uint16_t>(stage - 1)},
                                            place(shape, stage - 1), index);
    now.cost = costs_.cost(view, {id, stage}, index, splits_[b],
                           same ? &branch.stages[s - 1].cost : nullptr);
    now.tail = now.cost.reduction;
    const LayerTimes& times = now.cost.times;
    Seconds back = now.cost.reduction;
    now.unbroken = s == 0;
    branch.path += times.full_forward;
    if (s > 0) {
      const TimedStage& before = branch.stages[s - 1];
      const Seconds message = before.cost.message;
      if (before.cost.flows) {
        now.reach = before.reach + before.cost.times.forward + message;
        branch.path += message;
      } else {
        branch.path = times.full_forward;
      }
      if (before.cost.returns) {
        now.through = message + before.cost.times.backward + before.through;
        now.tail = std::max(now.tail, message + before.cost.times.backward + before.tail);
        now.unbroken = before.unbroken;
        back = std::max(back, message + branch.back);
      }
    }
    branch.back = times.full_backward + back;
  }
  branch.visited =
      needs_backward(costs_.scenario().model, (*view.branches[b].stages).back().back().module);
}

namespace {

RankWork work_of(const TimedStage& stage) {
  return {stage.cost.times.lane, stage.cost.times.weights, stage.reach,    stage.tail,
          stage.through,         stage.cost.reduction,     stage.unbroken, 1};
}

// Adds another stage of the same rank: from the first stage that may begin to the last that ends.
void join(RankWork& work, const RankWork& more) {
  if (work.stages++ == 0) {
    work = more;
    return;
  }
  work.lane += more.lane;
  work.weights += more.weights;
  work.reach = std::min(work.reach, more.reach);
  work.tail = std::min(work.tail, more.tail);
  work.through = std::min(work.through, more.through);
  work.reduction = std::min(work.reduction, more.reduction);
  work.unbroken = work.unbroken && more.unbroken;
}

}  // namespace

RankWork LayoutTimes::on_rank(const RankMoments& rank, std::size_t b) const {
  RankWork work;
  for (const StageOfBranch& of : rank.stages)
    if (of.branch == b) join(work, work_of(timed_[b].stages[of.stage]));
  return work;
}

// Visits the work of each rank and, if it has several stages, each of these alone: the first and
// the last microbatch pass through all of them.
template <class Visit>
void LayoutTimes::each_work(const LayoutView& view, std::size_t b, Visit visit) const {
  for (const RankMoments& rank : *view.ranks) {
    const RankWork work = on_rank(rank, b);
    if (work.stages == 0) continue;
    visit(work);
    if (work.stages == 1) continue;
    for (const StageOfBranch& of : rank.stages)
      if (of.branch == b) visit(work_of(timed_[b].stages[of.stage]));
  }
}

// Returns the time when all gradients of the branch are reduced, and everything that waits for them
// is done.
Seconds LayoutTimes::end_of_branch(const LayoutView& view, std::size_t b,
                                   const Around& around) const {
  Seconds end{};
  each_work(view, b, [&](const RankWork& work) {
    const Seconds done = around.before + work.reach + work.lane;
    // If weight parts come later, the last gradient may return before the last of them.
    const Seconds returned = done - work.weights;
    end = std::max({end, done + work.reduction, returned + work.tail});
    if (around.after.count() > 0 && (!around.through || work.unbroken))
      end = std::max(end, returned + (around.through ? work.through : Seconds(0)) + around.after);
  });
  return end;
}

// Returns the time when the language module's first stage has ended its last backward, if the
// pipeline fills and drains `fills` times.
Seconds LayoutTimes::end_of_fills(const LayoutView& view, Seconds before, int fills) const {
  Seconds end{};
  each_work(view, view.language, [&](const RankWork& work) {
    if (!work.unbroken) return;
    const Seconds once = before + work.reach + work.lane;
    end =
        std::max({end, once,
                  once - work.weights + work.through + (fills - 1) * (work.through + work.reach)});
  });
  return end;
}

// Returns whether every microbatch of the language module waits for one of the branch, or one of
// the branch waits for it.
bool LayoutTimes::coupled(const LayoutView& view, std::size_t b) const {
  if (!views_.everywhere(view, b)) return false;
  const Model& model = costs_.scenario().model;
  const ModuleId language = language_module(model);
  const std::vector<ModuleId>& modules = *view.branches[b].modules;
  return std::any_of(model.edges.begin(), model.edges.end(), [&](const Edge& edge) {
    const ModuleId here = b < view.language ? edge.from : edge.to;
    const ModuleId there = b < view.language ? edge.to : edge.from;
    return there == language && edge.to_layer == 0 &&
           std::find(modules.begin(), modules.end(), here) != modules.end();
  });
}

// Bounds encoders on ranks of their own, the language module, and what it feeds: each alone, and
// each after and before the others.
Seconds LayoutTimes::end_of_paths(const LayoutView& view) const {
  const std::size_t language = view.language;
  const TimedBranch& middle = timed_[language];
  const TimedStage& last = middle.stages.back();
  const Seconds crossing = costs_.rings().crossing();
  // For the module that the language module feeds: rows leave before the head.
  const bool reaches = last.reach.count() > 0 || middle.stages.size() == 1;
  Seconds end{};
  Around inside, outside;
  for (std::size_t b = 0; b < timed_.size(); ++b) {
    if (b == language) continue;
    if (b < language && !view.branches[b].shared) {
      end = std::max(end, end_of_branch(view, b, {}));
      if (!coupled(view, b)) continue;
      inside.before = std::max(inside.before, timed_[b].path + crossing);
      if (timed_[b].visited) inside.after = std::max(inside.after, crossing + timed_[b].back);
    }
  }
  for (std::size_t b = language + 1; b < timed_.size(); ++b) {
    Around around{.before = {}, .after = {}, .through = false};
    if (coupled(view, b)) {
      if (reaches) around.before = inside.before + last.reach + crossing;
      if (middle.visited && !splits_[language]) {
        around.after = crossing + last.tail;
        if (last.unbroken && inside.after.count() > 0)
          around.after = std::max(around.after, crossing + last.through + inside.after);
      }
    }
    end = std::max(end, end_of_branch(view, b, around));
  }
  return std::max(end, end_of_branch(view, language, inside));
}

// Returns the times of one microbatch of each encoder that a rank holds in addition to its stages
// of the language module.
LayoutTimes::Colocated LayoutTimes::colocated(const LayoutView& view,
                                              const RankMoments& rank) const {
  Colocated found;
  for (std::size_t i = rank.stages.size(); i-- > 0;) {
    const StageOfBranch of = rank.stages[i];
    if (of.branch >= view.language) continue;
    const StagePrice& cost = timed_[of.branch].stages[of.stage].cost;
    found.works = view.branches[of.branch].works;
    found.forward += cost.times.forward;
    found.backward += cost.times.backward;
    found.reduction = cost.reduction;  // of the first stage of the first, whose backward is last
  }
  return found;
}

// Bounds encoders on the language module's ranks: every rank runs its encoder stages before, after
// or between the parts of its own work. Which of the encoders' columns share a rank with the
// busiest column is not examined; the smallest microbatch is assumed.
Seconds LayoutTimes::end_on_shared(const LayoutView& view) const {
  std::optional<Colocated> first;  // the least of ranks that have the language module's first stage
  Seconds end{};
  for (const RankMoments& rank : *view.ranks) {
    const RankWork work = on_rank(rank, view.language);
    const Colocated own = colocated(view, rank);
    if (work.stages == 0 || own.works == 0) continue;
    end = std::max(end, work.lane + (own.forward + own.backward) * own.works + own.reduction);
    const StageOfBranch start{static_cast<std::uint16_t>(view.language), 0};
    if (!std::binary_search(rank.stages.begin(), rank.stages.end(), start)) continue;
    if (!first) first = own;
    first->forward = std::min(first->forward, own.forward);
    first->backward = std::min(first->backward, own.backward);
    first->reduction = std::min(first->reduction, own.reduction);
  }
  if (!first) return Seconds(0);
  const EncoderOrder order = view.layout->encoder_order;
  const int works = first->works, fills = order == EncoderOrder::in_turn ? works : 1;
  // Number of an encoder's microbatches that run before the language module's first, and after its
  // last.
  const int around = order == EncoderOrder::interleaved ? 0 : works / fills;
  Seconds before = first->forward * around, after = first->backward * around, reductions{};
  for (std::size_t b = 0; b < view.language; ++b) {
    if (view.branches[b].grid->first_rank != view.branches[view.language].grid->first_rank)
      continue;
    const TimedBranch& branch = timed_[b];
    if (branch.stages.size() == 1) reductions += branch.stages.front().cost.reductions;
    if (!coupled(view, b)) continue;
    const TimedStage& last = branch.stages.back();
    before = std::max(before, branch.path);
    if (last.unbroken) after = std::max(after, last.through + last.cost.times.full_backward);
  }
  end = std::max(end, end_of_branch(view, view.language, {.before = before}) + reductions);
  // The ranks of the first stage run all parts one after another: encoders, the whole pipeline,
  // encoders.
  return std::max(end, end_of_fills(view, before, fills) +
                           (first->forward + first->backward) * (fills - 1) + after +
                           first->reduction);
}

void LayoutTimes::start(const LayoutView& view) {
  costs_.start(view);
  timed_.resize(view.branches.size());
  splits_.assign(view.branches.size(), 0);
  for (const RankMoments& rank : *view.ranks)
    if (rank.splits) splits_[view.language] = 1;
}

void LayoutTimes::add_part(const LayoutView& view, std::size_t branch, PartBound& part) {
  start(view);
  times_.clear();
  for (std::size_t s = 0; s < view.branches[branch].stages->size(); ++s)
    times_.push_back(
        costs_.times(view, {static_cast<std::uint16_t>(branch), static_cast<std::uint16_t>(s)},
                     splits_[branch]));
  bool any = false;
  for (const RankMoments& rank : *view.ranks) {
    LayerTimes work;
    bool has = false;
    for (const StageOfBranch& of : rank.stages)
      if (of.branch == branch) work += times_[of.stage], has = true;
    if (!has) continue;
    const Seconds least =
        std::min(work.lane, (work.forward + work.backward) * view.branches[branch].works);
    part.step = std::max(part.step, work.lane * (1 - kSlack));
    part.least = any ? std::min(part.least, least * (1 - kSlack)) : least * (1 - kSlack);
    any = true;
  }
}

Bound LayoutTimes::bound(const LayoutView& view) {
  start(view);
  for (std::size_t b = 0; b < view.branches.size(); ++b) time_branch(view, b);
  Seconds end = std::max(end_of_paths(view), end_on_shared(view)), update{};
  Bound bound;
  for (const RankMoments& rank : *view.ranks) {
    Seconds work{}, streamed{}, gathers{};
    Bytes updated{};
    for (const StageOfBranch& of : rank.stages) {
      const StagePrice& cost = timed_[of.branch].stages[of.stage].cost;
      const bool known = leads(view, rank, of.branch);
      work += known ? cost.times.lane
                    : (cost.times.forward + cost.times.backward) * view.branches[of.branch].works;
      streamed += cost.streamed + cost.reductions;
      gathers += cost.gathers;
      updated += cost.updated;
    }
    bound.busiest = std::max(bound.busiest, work);
    end = std::max({end, work, streamed});
    update = std::max(update, costs_.update_time(updated) + gathers);
  }
  bound.step = (end + costs_.rings().scalars(world_size(*view.layout)) + update) * (1 - kSlack);
  return bound;
}

}  // namespace polyphony
