// check_turns() of shared/step/step_plan.h. Turns of ranks that wait for each other in a ring are found by
// whoever knows what waits for what: of a layout's own turns check_layout(), as ranks and turns
// (shared/planner/timetable.h); of any step compile() and verify(), as ranks and ops (FaultKind::cycle), which
// see a plan before it is simulated, run live or replayed.
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
            step_.turns(rank) != step_.turns(set.front()))
          add("ranks " + std::to_string(set.front().value) + " and " + std::to_string(rank.value) +
              " compute together but have different orders");
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
    const std::string who = "rank " + std::to_string(rank.value) + ": ";
    for (const Turn& turn : step_.turns(rank)) {
      if (turn.branch >= plan_.branches.size() ||
          turn.stage >= plan_.branches[turn.branch].stages.size()) {
        add(who + "there is no stage " + std::to_string(turn.stage) + " of branch " +
            std::to_string(turn.branch));
        continue;
      }
      const Branch& branch = plan_.branches[turn.branch];
      const std::string turn_name =
          std::string(1, letter(turn.kind)) + " of " +
          name(turn.branch, turn.stage, static_cast<std::size_t>(turn.work));
      if (turn.work >= branch.microbatches) {
        add(who + turn_name + ": there are " + std::to_string(branch.microbatches) +
            " microbatches");
        continue;
      }
      if (!branch.holds(rank, turn.stage)) {
        add(who + turn_name + ": the stage is on other ranks, index " +
            std::to_string(branch.rank_of_stage[turn.stage]) + " of the pipeline");
        continue;
      }
      Counts& count = counts[{turn.branch, turn.stage, static_cast<std::size_t>(turn.work)}];
      if (!is_forward(turn) && count.forwards == 0) add(who + turn_name + ": before its forward");
      if (turn.kind == TurnKind::backward_weight && count.inputs == 0)
        add(who + turn_name + ": before its input part (I)");
      ++(is_forward(turn)                        ? count.forwards
         : turn.kind == TurnKind::backward       ? count.backwards
         : turn.kind == TurnKind::backward_input ? count.inputs
                                                 : count.weights);
    }
    for (std::size_t b = 0; b < plan_.branches.size(); ++b)
      for (std::size_t s = 0; s < plan_.branches[b].stages.size(); ++s) {
        if (!plan_.branches[b].holds(rank, s)) continue;
        for (int w = 0; w < plan_.branches[b].microbatches; ++w)
          check_counts(who, b, s, static_cast<std::size_t>(w),
                       counts[{b, s, static_cast<std::size_t>(w)}]);
      }
  }

  void check_counts(const std::string& who, std::size_t branch, std::size_t stage, std::size_t work,
                    const Counts& count) {
    const std::string of = " of " + name(branch, stage, work);
    if (count.forwards == 0) add(who + "the forward" + of + " is lost");
    if (count.forwards > 1) add(who + "the forward" + of + " is doubled");
    const int backwards = count.backwards + count.inputs;
    if (backwards == 0 && trains(branch, stage, false)) add(who + "the backward" + of + " is lost");
    if (backwards > 1) add(who + "the backward" + of + " is doubled");
    if (count.weights > 1) add(who + "the weight part" + of + " is doubled");
    if (count.inputs == 1 && count.weights == 0 && trains(branch, stage, true))
      add(who + "the weight part" + of + " is lost");
  }

  const Model& model_;
  const Plan& plan_;
  const StepPlan& step_;
  std::vector<std::string> faults_;
};

}  // namespace

std::vector<std::string> check_turns(const Model& model, const Plan& plan, const StepPlan& step) {
  return Checking(model, plan, step).run();
}

}  // namespace polyphony
