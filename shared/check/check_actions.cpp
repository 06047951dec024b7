// check_actions() of shared/step/step_plan.h. It does not look for deadlocks (ranks whose actions
// wait for each other in a cycle). For a layout's own actions check_layout() finds them, and names
// ranks and actions (shared/planner/timetable.h). For any step compile() and verify() find them,
// and name ranks and ops (FaultKind::cycle), before the step is simulated, run live or replayed.
#include <algorithm>
#include <map>

#include "shared/step/step_plan.h"

namespace polyphony {
namespace {

constexpr std::size_t kMostFaults = 20;

class Checking {
 public:
  Checking(const Model& model, const Plan& plan, const StepPlan& step)
      : model_(model), plan_(plan), step_(step) {}

  std::vector<std::string> run() {
    for (const std::vector<Rank>& set : rank_sets(plan_)) {
      for (const Rank rank : set)
        if (step_.order_of[rank.value] != step_.order_of[set.front().value] &&
            step_.actions(rank) != step_.actions(set.front()))
          add("ranks " + std::to_string(set.front().value) + " and " + std::to_string(rank.value) +
              " compute together but run their actions in different orders");
      check_rank(set.front());
    }
    return std::move(faults_);
  }

 private:
  struct Counts {
    int forwards = 0, backwards = 0, inputs = 0, weights = 0;
  };

  std::string name(std::size_t branch, std::size_t stage, std::size_t work) const {
    const Branch& of = plan_.branches[branch];
    return model_.modules[of.stages[stage].chunks.back().module.value].name + " stage " +
           std::to_string(stage) + ", microbatch " + std::to_string(work);
  }
  void add(std::string fault) {
    if (faults_.size() < kMostFaults && !std::count(faults_.begin(), faults_.end(), fault))
      faults_.push_back(std::move(fault));
  }
  bool trains(std::size_t branch, std::size_t stage, bool weights) const {
    const auto& chunks = plan_.branches[branch].stages[stage].chunks;
    return std::any_of(chunks.begin(), chunks.end(), [&](const Chunk& chunk) {
      return weights ? model_.modules[chunk.module.value].trainable != Trainable::frozen
                     : needs_backward(model_, chunk.module);
    });
  }

  void check_rank(Rank rank) {
    std::map<std::vector<std::size_t>, Counts> counts;
    const std::string subject = "rank " + std::to_string(rank.value) + ": ";
    for (const Action& action : step_.actions(rank)) {
      if (action.branch >= plan_.branches.size() ||
          action.stage >= plan_.branches[action.branch].stages.size()) {
        add(subject + "stage " + std::to_string(action.stage) + " of branch " +
            std::to_string(action.branch) + " does not exist");
        continue;
      }
      const Branch& branch = plan_.branches[action.branch];
      const std::string action_name =
          std::string(1, letter(action.kind)) + " of " +
          name(action.branch, action.stage, static_cast<std::size_t>(action.work));
      if (action.work >= branch.microbatches) {
        add(subject + action_name + " does not exist: there are " +
            std::to_string(branch.microbatches) + " microbatches");
        continue;
      }
      if (!branch.holds(rank, action.stage)) {
        add(subject + action_name + " belongs on other ranks: its stage is at index " +
            std::to_string(branch.rank_of_stage[action.stage]) + " of the pipeline");
        continue;
      }
      Counts& count = counts[{action.branch, action.stage, static_cast<std::size_t>(action.work)}];
      if (!is_forward(action) && count.forwards == 0)
        add(subject + action_name + " comes before its forward");
      if (action.kind == ActionKind::backward_weight && count.inputs == 0)
        add(subject + action_name + " comes before its input part (I)");
      ++(is_forward(action)                          ? count.forwards
         : action.kind == ActionKind::backward       ? count.backwards
         : action.kind == ActionKind::backward_input ? count.inputs
                                                     : count.weights);
    }
    for (std::size_t b = 0; b < plan_.branches.size(); ++b)
      for (std::size_t s = 0; s < plan_.branches[b].stages.size(); ++s) {
        if (!plan_.branches[b].holds(rank, s)) continue;
        for (int w = 0; w < plan_.branches[b].microbatches; ++w)
          check_counts(subject, b, s, static_cast<std::size_t>(w),
                       counts[{b, s, static_cast<std::size_t>(w)}]);
      }
  }

  void check_counts(const std::string& subject, std::size_t branch, std::size_t stage,
                    std::size_t work, const Counts& count) {
    const std::string of = " of " + name(branch, stage, work);
    if (count.forwards == 0) add(subject + "the forward" + of + " is missing");
    if (count.forwards > 1) add(subject + "the forward" + of + " is repeated");
    const int backwards = count.backwards + count.inputs;
    if (backwards == 0 && trains(branch, stage, false))
      add(subject + "the backward" + of + " is missing");
    if (backwards > 1) add(subject + "the backward" + of + " is repeated");
    if (count.weights > 1) add(subject + "the weight part" + of + " is repeated");
    if (count.inputs == 1 && count.weights == 0 && trains(branch, stage, true))
      add(subject + "the weight part" + of + " is missing");
  }

  const Model& model_;
  const Plan& plan_;
  const StepPlan& step_;
  std::vector<std::string> faults_;
};

}  // namespace

std::vector<std::string> check_actions(const Model& model, const Plan& plan, const StepPlan& step) {
  return Checking(model, plan, step).run();
}

}  // namespace polyphony
