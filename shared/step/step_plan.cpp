#include "shared/step/step_plan.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "shared/schedule/orders.h"
#include "shared/step/assign.h"
#include "shared/step/planned_step.h"
#include "shared/step/searched_step.h"

namespace polyphony {
namespace {

// The index of a rank along the pipeline of a branch that it holds.
struct Carried {
  std::size_t branch = 0;
  int index = 0;
  auto operator<=>(const Carried&) const = default;
};

std::vector<Carried> carried(const Plan& plan, int rank) {
  std::vector<Carried> result;
  for (std::size_t b = 0; b < plan.branches.size(); ++b) {
    const int index = plan.branches[b].index_of(Rank(static_cast<std::size_t>(rank)));
    if (index >= 0) result.push_back({b, index});
  }
  return result;
}

class Orders {
 public:
  Orders(const Layout& layout, const Plan& plan)
      : row_(schedule(layout.schedule)),
        encoders_(layout.encoder_order),
        actions_(layout.actions),
        plan_(plan),
        language_(plan.branches[plan.language]) {}

  Actions make(const std::vector<Carried>& mine) const {
    return with_parts(plan_, in_microbatches(mine));
  }

 private:
  Actions in_microbatches(const std::vector<Carried>& mine) const {
    if (mine.empty()) return {};
    const bool language = mine.back().branch >= plan_.language &&
                          std::any_of(mine.begin(), mine.end(), [&](const Carried& one) {
                            return one.branch == plan_.language;
                          });
    if (mine.size() > 1 && language) return with_language(mine);
    Actions actions;  // several encoders on the same ranks take turns
    for (const Action& action : branch_order(mine.front())) {
      std::vector<Carried> all = mine;
      if (!is_forward(action)) std::reverse(all.begin(), all.end());
      for (const Carried& one : all) actions.push_back(of(one.branch, action, 0));
    }
    return actions;
  }
  static Action of(std::size_t branch, Action action, int first_work) {
    action.branch = static_cast<std::uint16_t>(branch);
    action.work += first_work;
    return action;
  }
  Pipeline pipeline(const Branch& branch, int microbatches, int after) const {
    return {branch.grid.pp, branch.grid.vpp, microbatches, after};
  }
  // Returns the number of stages of branches that the language module feeds on other ranks.
  int after_language() const {
    int after = 0;
    for (std::size_t b = plan_.language + 1; b < plan_.branches.size(); ++b)
      if (!same_ranks(plan_.branches[b].grid, language_.grid))
        after = std::max(after, plan_.branches[b].grid.pp);
    return after;
  }
  // Returns how many times per step the language module's pipeline drains: once per microbatch of
  // an encoder with encoder_order in-turn.
  int flushes() const {
    if (encoders_ != EncoderOrder::in_turn) return 1;
    for (std::size_t b = 0; b < plan_.language; ++b)
      if (plan_.branches[b].grid.first_rank == language_.grid.first_rank)
        return plan_.branches[b].microbatches;
    return 1;
  }
  // Returns the number of an encoder's microbatches that have actions of their own; the parts of
  // one microbatch share an action.
  int works(const Branch& branch) const {
    return std::min(branch.microbatches, language_.microbatches);
  }

  Actions of_language(int index, int microbatches) const {
    if (!actions_.empty()) return actions_[static_cast<std::size_t>(index)];
    return row_.order(pipeline(language_, microbatches, after_language()), index);
  }

  // Returns the actions of an encoder if the layout has its own actions. Forwards follow the order
  // in which the language module's first stage takes them, as far ahead as the later stages of the
  // branch need. A backward runs once the gradients of everything that its forward fed have
  // returned.
  Actions feeding(const Branch& branch, int index) const {
    const int fed = language_.microbatches / works(branch), ahead = branch.grid.pp - index;
    std::vector<int> forwards;  // microbatches, in their order
    std::vector<bool> asked(static_cast<std::size_t>(works(branch)), false);
    std::vector<int> left(static_cast<std::size_t>(works(branch)), fed);
    std::vector<std::pair<std::size_t, int>>
        backwards;  // after so many forwards of the first stage
    for (const Action& action :
         actions_[static_cast<std::size_t>(language_.rank_of_stage.front())]) {
      if (action.stage != 0) continue;
      const int work = action.work / fed;
      if (is_forward(action)) {
        if (!asked[static_cast<std::size_t>(work)]) forwards.push_back(work);
        asked[static_cast<std::size_t>(work)] = true;
      } else if (returns_gradient(action) && --left[static_cast<std::size_t>(work)] == 0) {
        backwards.emplace_back(forwards.size(), work);
      }
    }
    Actions actions;
    std::size_t next = 0;
    const auto run_to = [&](std::size_t count) {
      for (; next < std::min(count, forwards.size()); ++next)
        actions.push_back(make_action(ActionKind::forward, index, forwards[next]));
    };
    for (const auto& [before, work] : backwards) {
      run_to(before + static_cast<std::size_t>(ahead));
      actions.push_back(make_action(ActionKind::backward, index, work));
    }
    run_to(forwards.size());
    return actions;
  }

  // Returns the actions of a branch fed by a language module with own actions: those of its last
  // stage.
  Actions fed(int index) const {
    Actions actions;
    for (const Action& action : actions_[static_cast<std::size_t>(language_.rank_of_stage.back())])
      if (action.stage + 1 == static_cast<int>(language_.stages.size()) &&
          action.kind != ActionKind::backward_weight)
        actions.push_back(make_action(
            is_forward(action) ? ActionKind::forward : ActionKind::backward, index, action.work));
    return actions;
  }

  // Returns the actions of a branch alone on its ranks.
  Actions branch_order(const Carried& mine) const {
    const Branch& branch = plan_.branches[mine.branch];
    if (mine.branch < plan_.language) {
      if (!actions_.empty()) return feeding(branch, mine.index);
      const int lead = forward_lead(first_of_language(), static_cast<int>(plan_.language), 0),
                fed = language_.microbatches / works(branch);
      const Schedule& own = schedule(default_schedule(branch.grid.vpp));
      return own.order(
          pipeline(branch, works(branch), (lead + fed - 1) / fed + 1 + branch.grid.ahead),
          mine.index);
    }
    if (mine.branch == plan_.language) return of_language(mine.index, branch.microbatches);
    if (!actions_.empty() && flushes() == 1) return fed(mine.index);
    const int groups = flushes(), each = branch.microbatches / groups;
    const Actions group = schedule(row_.following).order(pipeline(branch, each, 0), mine.index);
    Actions actions;
    for (int g = 0; g < groups; ++g)
      for (const Action& action : group) actions.push_back(of(0, action, g * each));
    return actions;
  }

  // Returns the actions of the first rank along the language module's pipeline, without those of
  // other branches on the rank.
  Actions first_of_language() const {
    if (encoders_ == EncoderOrder::interleaved)
      return interleaved(carried(plan_, language_.grid.first_rank));
    Actions actions = row_.order(pipeline(language_, language_.microbatches, after_language()), 0);
    for (Action& action : actions) action.branch = static_cast<std::uint16_t>(plan_.language);
    return actions;
  }

  // Returns the actions of encoders, the language module and the module that it feeds, on the same
  // ranks.
  Actions with_language(const std::vector<Carried>& mine) const {
    if (encoders_ == EncoderOrder::interleaved) return interleaved(mine);
    const int groups = flushes(), fed = language_.microbatches / groups;
    const Actions group = of_language(mine.back().index, fed);
    Actions actions;
    for (int g = 0; g < groups; ++g) {
      for (std::size_t i = 0; i + 1 < mine.size(); ++i)
        add_phase(mine[i], true, g, groups, actions);
      for (const Action& action : group) actions.push_back(of(plan_.language, action, g * fed));
      for (std::size_t i = mine.size() - 1; i-- > 0;) add_phase(mine[i], false, g, groups, actions);
    }
    return actions;
  }

  // Adds all forwards, or all backwards, of an encoder's microbatches in one of `groups`.
  void add_phase(const Carried& mine, bool forwards, int group, int groups,
                 Actions& actions) const {
    const Branch& branch = plan_.branches[mine.branch];
    const int each = works(branch) / groups;
    for (const Action& action : schedules::gpipe(pipeline(branch, each, 0), mine.index))
      if (is_forward(action) == forwards) actions.push_back(of(mine.branch, action, group * each));
  }

  // Returns the actions of one pipeline, whose first virtual stages are the encoders and whose last
  // ones are the module that the language module feeds. An encoder microbatch that feeds several
  // microbatches runs forward with the first of them, and backward with the last.
  Actions interleaved(const std::vector<Carried>& mine) const {
    std::size_t encoders = 0;  // of `mine`
    while (mine[encoders].branch < plan_.language) ++encoders;
    const Branch *first = &plan_.branches[mine.front().branch],
                 *last = &plan_.branches[mine.back().branch];
    Pipeline all = pipeline(language_, language_.microbatches, after_language());
    if (encoders > 0) all.virtual_stages += first->grid.vpp;
    if (last != &language_) all.virtual_stages += last->grid.vpp;
    const int before = encoders > 0 ? first->grid.pp * first->grid.vpp : 0,
              after = before + language_.grid.pp * language_.grid.vpp,
              fed = encoders > 0 ? language_.microbatches / works(*first) : 1;
    Actions actions;
    for (Action action : schedules::interleaved(all, mine.back().index)) {
      if (action.stage >= before) {
        const bool own = action.stage < after;
        action.stage = static_cast<std::uint16_t>(action.stage - (own ? before : after));
        actions.push_back(of(own ? plan_.language : mine.back().branch, action, 0));
        continue;
      }
      if (action.work % fed != (is_forward(action) ? 0 : fed - 1)) continue;
      action.work /= fed;
      for (std::size_t i = 0; i < encoders; ++i)
        actions.push_back(of(mine[is_forward(action) ? i : encoders - 1 - i].branch, action, 0));
    }
    return actions;
  }

  const Schedule& row_;
  const EncoderOrder encoders_;
  const std::vector<Actions>& actions_;  // the layout's own; empty: the schedule's
  const Plan& plan_;
  const Branch& language_;
};

}  // namespace

StepPlan make_step_plan(const Scenario& scenario, const Layout& layout, const Plan& plan,
                        const Batch& batch) {
  StepPlan step = make_orders(layout, plan);
  step.works = layout.planner == Planning::entrain
                   ? planned_works(scenario.model, plan, batch, layout.deferral)
                   : assign_work(scenario.model, plan, batch);
  step.totals = totals_of(batch);
  if (layout.planner == Planning::dip)
    search_orders(scenario.model, plan, batch, {.placements = layout.placements}, step);
  return step;
}

StepPlan make_orders(const Layout& layout, const Plan& plan) {
  StepPlan step;
  const Orders orders(layout, plan);
  std::map<std::vector<Carried>, std::uint32_t> known;
  for (int rank = 0; rank < world_size(layout); ++rank) {
    const std::vector<Carried> mine = carried(plan, rank);
    const auto [entry, fresh] =
        known.try_emplace(mine, static_cast<std::uint32_t>(step.orders.size()));
    if (fresh) step.orders.push_back(orders.make(mine));
    step.order_of.push_back(entry->second);
  }
  return step;
}

Actions actions_of(const Layout& layout, const Plan& plan, int rank) {
  return Orders(layout, plan).make(carried(plan, rank));
}

std::vector<std::vector<Rank>> rank_sets(const Plan& plan) {
  int world = 0;
  for (const Branch& branch : plan.branches)
    world = std::max(world, branch.grid.first_rank + branch.grid.ranks);
  std::vector<int> first(static_cast<std::size_t>(world));  // of the component, lowest rank
  std::iota(first.begin(), first.end(), 0);
  const auto root = [&](int rank) {
    while (first[static_cast<std::size_t>(rank)] != rank)
      rank = first[static_cast<std::size_t>(rank)];
    return rank;
  };
  for (const Branch& branch : plan.branches) {
    const int cell = cell_ranks(branch.grid), end = branch.grid.first_rank + branch.grid.ranks;
    for (int begin = branch.grid.first_rank; begin < end; begin += cell)
      for (int rank = begin + 1; rank < begin + cell; ++rank) {
        const int one = root(begin), other = root(rank);
        first[static_cast<std::size_t>(std::max(one, other))] = std::min(one, other);
      }
  }
  std::vector<std::vector<Rank>> sets;
  std::map<int, std::size_t> known;
  for (int rank = 0; rank < world; ++rank) {
    const auto [entry, fresh] = known.try_emplace(root(rank), sets.size());
    if (fresh) sets.emplace_back();
    sets[entry->second].emplace_back(static_cast<std::size_t>(rank));
  }
  return sets;
}

}  // namespace polyphony
