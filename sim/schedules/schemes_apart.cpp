// Schedules whose encoders have ranks of their own (non-colocated).
#include <algorithm>
#include <numeric>

#include "shared/schedule/orders.h"
#include "sim/schedules/stage_splits.h"

namespace polyphony::sim {
namespace {

std::vector<int> in_order_of_work(const StageTimes& times) {
  std::vector<Seconds> work(static_cast<std::size_t>(times.microbatches));
  for (const ModuleTimes& module : times.modules)
    for (std::size_t i = 0; i < module.costs.size(); ++i)
      work[static_cast<std::size_t>(module.microbatch_of[i % module.microbatch_of.size()])] +=
          seconds(module.costs[i]);
  std::vector<int> order(work.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return work[static_cast<std::size_t>(a)] < work[static_cast<std::size_t>(b)];
  });
  return order;
}
std::vector<int> least_at_ends(const StageTimes& times) {
  const std::vector<int> order = in_order_of_work(times);
  std::vector<int> ends = order;
  for (std::size_t i = 0; i < order.size(); ++i)
    ends[i % 2 == 0 ? i / 2 : order.size() - 1 - i / 2] = order[i];
  return ends;
}
std::vector<int> in_given_order(const StageTimes& times) {
  std::vector<int> order(static_cast<std::size_t>(times.microbatches));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

}  // namespace

std::vector<std::vector<int>> slots_of(const ModuleTimes& module, const std::vector<int>& order) {
  std::vector<std::vector<int>> slots;
  for (const int k : order) {
    const auto [begin, end] =
        std::equal_range(module.microbatch_of.begin(), module.microbatch_of.end(), k);
    slots.emplace_back();
    for (auto it = begin; it != end; ++it)
      slots.back().push_back(static_cast<int>(it - module.microbatch_of.begin()));
  }
  return slots;
}

Arranged non_colocated(const StageTimes& times, const SeparateBranches& branches) {
  Arranged made{{0, times.microbatches, {}, {}}, {}, {}};
  const std::size_t last = times.modules.size() - 1;
  const Schedule& row = schedule(default_schedule(branches.rounds));
  const Pipeline fed{branches.ranks[last], branches.rounds, times.microbatches, 0};
  const int lead = forward_lead(row.order(fed, 0), 0, 0) + branches.ahead;
  for (std::size_t b = 0; b <= last; ++b) {
    const Pipeline pipeline =
        b == last ? fed : Pipeline{branches.ranks[b], 1, times.microbatches, lead + 1};
    const Schedule& of = schedule(default_schedule(pipeline.virtual_stages));
    made.costs.branches.push_back(split(times.modules[b], placed(of, pipeline, made.costs.ranks)));
    if (b < last) made.costs.branches.back().feeds = last;
    for (int p = 0; p < branches.ranks[b]; ++p) {
      made.orders.emplace_back();
      for (Action action : of.order(pipeline, p))
        for (const int work : branches.slots[b][static_cast<std::size_t>(action.work)]) {
          action.work = work;
          made.orders.back().push_back(of_branch(action, b));
        }
    }
    made.costs.ranks += branches.ranks[b];
  }
  return made;
}

std::vector<RankAssignment> rank_assignments(const StageTimes& times, int ranks) {
  std::vector<RankAssignment> assignments;
  const int pieces = chained_encoders(times).pieces, last = times.modules.back().pieces;
  for (int e = 1; e < ranks && e <= pieces; ++e)
    for (int v = 1; v <= kMostRounds && v * (ranks - e) <= last; ++v)
      if (schedule(default_schedule(v)).refusal({ranks - e, v, times.microbatches, 0}).empty())
        assignments.push_back({std::to_string(e) + " + " + std::to_string(ranks - e) + " ranks" +
                                   (v > 1 ? ", " + vpp(v) : ""),
                               e, ranks - e, v});
  return assignments;
}

Scheme non_colocated_reordered(const StageTimes& times, int ranks) {
  Scheme scheme{"non-colocated, reordered", {}};
  const std::pair<const char*, std::vector<int> (*)(const StageTimes&)> orders[] = {
      {"as they come", in_given_order},
      {"by work", in_order_of_work},
      {"least work at both ends", least_at_ends}};
  for (const RankAssignment& assignment : rank_assignments(times, ranks))
    for (const auto& [name, order] : orders)
      scheme.settings.push_back(
          {assignment.name + ", " + name, [assignment, order](const StageTimes& of) {
             const StageTimes two{of.microbatches, {chained_encoders(of), of.modules.back()}};
             const std::vector<int> actions = order(of);
             return non_colocated(
                 two, {{assignment.encoder_ranks, assignment.ranks},
                       assignment.rounds,
                       0,
                       {slots_of(two.modules[0], actions), slots_of(two.modules[1], actions)}});
           }});
  return scheme;
}

Scheme modality_parallel(const StageTimes& times, int ranks) {
  Scheme scheme{"modalities in parallel", {}};
  std::vector<int> assigned(times.modules.size(), 1);
  const std::function<void(std::size_t, int)> assign = [&](std::size_t b, int left) {
    if (b + 1 == assigned.size()) {
      if (left < 1 || left > times.modules[b].pieces) return;
      assigned[b] = left;
      std::string name;
      for (const int one : assigned) name += (name.empty() ? "" : " + ") + std::to_string(one);
      scheme.settings.push_back({name + " ranks", [assigned](const StageTimes& of) {
                                   SeparateBranches branches{assigned, 1, 0, {}};
                                   for (const ModuleTimes& module : of.modules)
                                     branches.slots.push_back(slots_of(module, in_given_order(of)));
                                   return non_colocated(of, branches);
                                 }});
      return;
    }
    for (assigned[b] = 1; assigned[b] < left && assigned[b] <= times.modules[b].pieces;
         ++assigned[b])
      assign(b + 1, left - assigned[b]);
  };
  assign(0, ranks);
  return scheme;
}

}  // namespace polyphony::sim
