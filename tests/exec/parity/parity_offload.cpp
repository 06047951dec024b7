// Tapes that wait in the host's memory: placements, schedules, tensor and sequence parallelism, sharded
// parameters, recomputation, weight parts on their own, experts, context groups, a planner's orders.
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
  // Turn by turn: some tapes go, some stay, some are made again.
  cases.push_back(own_turns(homogeneous({1, 2, 1}, k1f1b, 4),
                            {"F0.0:offload F0.1:full F0.2:offload F0.3 B0.0 B0.1 I0.2 B0.3 W0.2",
                             "F1.0:offload F1.1 F1.2:offload F1.3:full B1.0 B1.1 B1.2 B1.3"}));
  cases.push_back(offloaded(own_turns(homogeneous({1, 2, 1}, k1f1b, 4),
                                      {"F0.0:none F0.1 F0.2 F0.3 B0.0 B0.1 B0.2 B0.3",
                                       "F1.0 F1.1 F1.2:none F1.3 B1.0 B1.1 B1.2 B1.3"})));
  return cases;
}

}  // namespace polyphony::exec::testing
