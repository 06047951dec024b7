// Activations offloaded to host memory: placements, schedules, tensor and sequence parallelism,
// sharded parameters, recomputation, separate weight parts, experts, context parallelism, a
// planner's choice.
#include "tests/exec/parity/parity_layouts.h"

namespace polyphony::exec::testing {
namespace {

Case offloaded(Case c) {
  for (ModuleLayout& layout : c.layout.modules) layout.offload_activations = true;
  c.name += ", offload";
  return c;
}
Case with(Case c, const char* what, const std::function<void(ModuleLayout&)>& change) {
  for (ModuleLayout& layout : c.layout.modules) change(layout);
  c.name += std::string(", ") + what;
  return c;
}
Case sequence(Case c) {
  return with(std::move(c), "sp", [](ModuleLayout& l) { l.sp = l.tp > 1; });
}
Case sharded(Case c, Shard shard) {
  return with(std::move(c), name(shard), [&](ModuleLayout& l) { l.shard = shard; });
}
Case selective(Case c) {
  return with(std::move(c), "selective",
              [](ModuleLayout& l) { l.recompute = Recompute::selective; });
}

// The planner dip offloads what does not fit: copies are fast, recomputing would take as long as a
// forward pass, and there is memory for some activations, not for all.
Case chosen_by_dip(Case c, std::uint64_t batch) {
  constexpr double kKept = 1, kRoom = 60;  // bytes per token; memory for about that many tokens
  c.layout.planner = Planning::dip;
  c.layout.placements = 150;
  c.layout.encoder_microbatches = c.layout.microbatches;
  for (std::size_t m = 0; m < c.layout.modules.size(); ++m) {
    ModuleLayout& grid = c.layout.modules[m];
    grid.offload_activations = true;
    grid.recompute = Recompute::full;
    StageCosts costs{{{Recipe::none, {}}, {Recipe::full, {}}, {Recipe::offload, {}}}, {}};
    for (int stage = 0; stage < grid.pp * grid.vpp; ++stage) {
      const WorkCurve time{0, 1.0 + stage % 3, 0.5}, twice{0, 2.0 * (1 + stage % 3), 1},
          message{0, 0.1, 0}, few{0, kKept / 8, 0};
      costs.ways[0].stages.push_back({time, time, time, message, {0, kKept, 0}, {}});
      costs.ways[1].stages.push_back({time, twice, time, message, few, {}});
      costs.ways[2].stages.push_back(
          {time, time, time, message, few, {}, {0, kKept * 7 / 8, 0}, {0, 0.05, 0}});
    }
    costs.room.assign(static_cast<std::size_t>(grid.pp), kRoom);
    c.planner_costs[ModuleId(m)].stages = std::move(costs);
  }
  c.drawn = batch;
  c.name = "dip with offload, batch " + std::to_string(batch) + ": " + c.name;
  return c;
}

}  // namespace

std::vector<Case> offload_cases() {
  constexpr auto kPhases = EncoderOrder::phases, kInterleaved = EncoderOrder::interleaved;
  std::vector<Case> cases = {
      homogeneous({}, kGpipe, 4),
      homogeneous({1, 4, 1}, k1f1b, 6),
      homogeneous({1, 2, 2}, kGpipe, 4),
      recompute(homogeneous({1, 2, 1}, kGpipe, 4)),
      selective(homogeneous({2, 2, 1}, kGpipe, 4)),
      sequence(homogeneous({2, 2, 1}, kGpipe, 4)),
      recompute(sequence(homogeneous({2, 2, 2}, kGpipe, 3))),
      sharded(homogeneous({1, 2, 2}, kGpipe, 4), Shard::full),
      sharded(homogeneous({2, 1, 2}, kGpipe, 4), Shard::gradients),
      homogeneous({1, 4, 1}, ScheduleKind::zero_bubble, 6),
      frozen(homogeneous({1, 4, 1}, k1f1b, 6), kVision),
      in_order(colocated({1, 2, 1}, {1, 2, 1}, k1f1b, 4, 0), kPhases),
      in_order(colocated({1, 2, 2}, {2, 2, 1}, k1f1b, 4, 2), kPhases),
      in_order(colocated({1, 2, 1}, {1, 2, 1}, k1f1b, 4, 0), kInterleaved),
      in_order(virtual_encoder(colocated({1, 2, 1}, {1, 2, 1}, k1f1b, 4, 0)), kPhases),
      sharded(in_order(colocated({1, 2, 2}, {1, 2, 2}, k1f1b, 4, 0), kPhases), Shard::full),
      apart({1, 2, 1}, {1, 2, 1}, k1f1b, 5),
      apart({1, 1, 2}, {1, 4, 1, {1, 1, 1, 1}}, k1f1b, 6),
      sequence(apart({2, 2, 1}, {2, 2, 1}, kGpipe, 4)),
      sharded(apart({1, 1, 2}, {1, 2, 2}, kGpipe, 4), Shard::full),
      recompute(apart({1, 2, 1, {1, 2}}, {2, 2, 1}, kGpipe, 4)),
      two_encoders(apart({1, 2, 1}, {1, 2, 1}, kGpipe, 4)),
      works_ahead(apart({1, 2, 1}, {1, 2, 1}, k1f1b, 6), 0, 2)};
  for (Case& c : cases) c = offloaded(std::move(c));
  // By action: some activations are offloaded, some stay, some are recomputed.
  cases.push_back(own_actions(homogeneous({1, 2, 1}, k1f1b, 4),
                              {"F0.0:offload F0.1:full F0.2:offload F0.3 B0.0 B0.1 I0.2 B0.3 W0.2",
                               "F1.0:offload F1.1 F1.2:offload F1.3:full B1.0 B1.1 B1.2 B1.3"}));
  cases.push_back(offloaded(own_actions(homogeneous({1, 2, 1}, k1f1b, 4),
                                        {"F0.0:none F0.1 F0.2 F0.3 B0.0 B0.1 B0.2 B0.3",
                                         "F1.0 F1.1 F1.2:none F1.3 B1.0 B1.1 B1.2 B1.3"})));
  cases.push_back(chosen_by_dip(apart({1, 2, 1}, {1, 2, 2}, kGpipe, 6), 1));
  cases.push_back(
      chosen_by_dip(in_order(colocated({1, 2, 1}, {1, 2, 1}, k1f1b, 6, 0), kInterleaved), 2));
  cases.push_back(
      chosen_by_dip(in_order(colocated({1, 2, 2}, {1, 2, 2}, k1f1b, 6, 0), kPhases), 3));
  cases.push_back(chosen_by_dip(sequence(apart({2, 1, 1}, {2, 2, 1}, kGpipe, 6)), 4));
  return cases;
}

}  // namespace polyphony::exec::testing
