#include "shared/step/planned_step.h"

#include <algorithm>
#include <numeric>

#include "shared/plan/item_cost.h"

namespace polyphony {
namespace {

using entrain::SampleWork;
using entrain::Slot;

std::vector<SampleWork> sample_works(const Model& model, const Plan& plan, const Batch& batch) {
  std::vector<SampleWork> works;
  for (const Sample& sample : batch.samples) {
    SampleWork work;
    for (std::size_t b = 0; b < plan.branches.size(); ++b)
      (b == plan.language ? work.language : work.encoder) +=
          sample_work(model, plan.branches[b], sample);
    works.push_back(work);
  }
  return works;
}

// Returns the slots of each replica, as positions in the batch.
std::vector<std::vector<Slot>> plan_replicas(const std::vector<SampleWork>& works, int replicas,
                                             int microbatches, bool deferral) {
  std::vector<std::vector<Slot>> planned;
  for (const entrain::Positions& mine : entrain::deal_replicas(works, replicas)) {
    std::vector<SampleWork> own;
    for (const int s : mine) own.push_back(works[static_cast<std::size_t>(s)]);
    planned.push_back(entrain::plan_replica(own, microbatches, deferral));
    for (Slot& slot : planned.back())
      for (entrain::Positions* list : {&slot.kept, &slot.deferred})
        for (int& s : *list) s = mine[static_cast<std::size_t>(s)];
  }
  return planned;
}

// The samples of an encoder's work: those that a slot keeps, or those that it defers.
struct SlotPart {
  std::size_t slot = 0;
  bool deferred = false;
};
SlotPart part_of(int work) { return {static_cast<std::size_t>(slot_of_work(work)), work % 3 == 1}; }

void append(const entrain::Positions& list, Members& members) {
  for (const int s : list) members.push_back(static_cast<std::uint32_t>(s));
}

// Assigns samples to lanes: the largest encoder work first, to the lane with the least.
std::vector<Members> assign_to_lanes(const std::vector<SampleWork>& works, Members members,
                                     std::size_t lanes) {
  std::stable_sort(members.begin(), members.end(), [&](std::uint32_t a, std::uint32_t b) {
    return works[a].encoder > works[b].encoder;
  });
  std::vector<Members> assigned(lanes);
  std::vector<double> loads(lanes, 0);
  for (const std::uint32_t s : members) {
    const auto to = std::min_element(loads.begin(), loads.end());
    *to += works[s].encoder;
    assigned[static_cast<std::size_t>(to - loads.begin())].push_back(s);
  }
  for (Members& lane : assigned) std::sort(lane.begin(), lane.end());
  return assigned;
}

}  // namespace

double sample_work(const Model& model, const Branch& branch, const Sample& sample) {
  const ItemCost& cost = branch.costs.item.value();
  const ModuleId module = branch.stages.front().chunks.front().module;
  if (module == language_module(model))
    return item_work(cost, static_cast<double>(language_rows(model, sample)));
  double work = 0;
  for (const Item& item : sample.items)
    if (takes(model, module, item.modality)) work += item_work(cost, item.tokens);
  return work;
}

WorkTable planned_works(const Model& model, const Plan& plan, const Batch& batch, bool deferral) {
  const Branch& language = plan.branches[plan.language];
  const std::vector<SampleWork> works = sample_works(model, plan, batch);
  const auto replicas = plan_replicas(works, language.grid.dp(), language.microbatches, deferral);
  return assign_work(model, plan, batch, [&](std::size_t branch, int index) {
    std::vector<Members> assigned;
    for (const std::vector<Slot>& slots : replicas) {
      Members& members = assigned.emplace_back();
      if (branch == plan.language) {
        const auto slot = static_cast<std::size_t>(index);
        append(slots[slot].kept, members);
        if (slot > 0) append(slots[slot - 1].deferred, members);
        std::sort(members.begin(), members.end());
      } else {
        const SlotPart part = part_of(index);
        append(part.deferred ? slots[part.slot].deferred : slots[part.slot].kept, members);
      }
    }
    const auto lanes = static_cast<std::size_t>(plan.branches[branch].grid.dp());
    if (lanes == assigned.size()) return assigned;
    Members all;
    for (const Members& members : assigned) all.insert(all.end(), members.begin(), members.end());
    return assign_to_lanes(works, std::move(all), lanes);
  });
}

PlannedWorks compare_works(const Model& model, const Plan& plan, const Batch& batch,
                           bool deferral) {
  const Branch& language = plan.branches[plan.language];
  const std::vector<SampleWork> works = sample_works(model, plan, batch);
  PlannedWorks result;
  result.of_samples = works;
  result.samples = static_cast<int>(batch.samples.size());
  const WorkTable in_order = assign_work(model, Plan{{language}, 0}, batch);
  for (const Work& work : in_order.works) {
    if (work.context > 0) continue;
    SampleWork& sum = result.before.emplace_back();
    for (std::uint32_t i = work.samples.begin; i < work.samples.end; ++i) {
      sum.encoder += works[in_order.work_samples[i]].encoder;
      sum.language += works[in_order.work_samples[i]].language;
    }
  }
  for (const auto& slots :
       plan_replicas(works, language.grid.dp(), language.microbatches, deferral)) {
    const std::vector<double> language_works = entrain::language_works(works, slots);
    for (std::size_t s = 0; s < slots.size(); ++s) {
      SampleWork& sum = result.after.emplace_back(SampleWork{0, language_works[s]});
      for (const entrain::Positions* list : {&slots[s].kept, &slots[s].deferred})
        for (const int sample : *list)
          sum.encoder += works[static_cast<std::size_t>(sample)].encoder;
      result.deferred += static_cast<int>(slots[s].deferred.size());
    }
  }
  return result;
}

namespace {

// Adds the action of a slot's own work; with a forward also that of the samples it defers,
// with a backward also that of the samples the slot before it deferred.
void add_with_deferred(Action action, int microbatches, Actions& actions) {
  const bool second = action.work % 2 == 1, paired = second || action.work + 1 < microbatches;
  const int first = action.work / 2 * 3;
  const bool alone = !paired || second == is_forward(action);
  action.work = second ? first + 2 : first;
  actions.push_back(action);
  if (alone) return;
  action.work = first + 1;
  actions.push_back(action);
}

}  // namespace

Actions with_parts(const Plan& plan, const Actions& slots) {
  const int microbatches = plan.branches[plan.language].microbatches;
  Actions actions;
  for (Action action : slots) {
    const int works =
        action.branch < plan.language ? plan.branches[action.branch].microbatches : microbatches;
    if (works <= microbatches) {
      actions.push_back(action);
    } else if (works % microbatches != 0) {
      add_with_deferred(action, microbatches, actions);
    } else {
      const int parts = works / microbatches, first = action.work * parts;
      for (action.work = first; action.work < first + parts; ++action.work)
        actions.push_back(action);
    }
  }
  return actions;
}

}  // namespace polyphony
