// Cases with a planner: every feature of layouts whose encoders have ranks of their own, and other
// placements, over 24 batches of randomly drawn samples.
#include "shared/check/check.h"
#include "tests/exec/parity/parity_layouts.h"

namespace polyphony::exec::testing {
namespace {

Case planned(Case c, std::uint64_t batch) {
  c.layout.planner = Planning::entrain;
  c.layout.encoder_microbatches = 0;
  c.drawn = batch;
  c.name = "entrain, batch " + std::to_string(batch) + ": " + c.name;
  return c;
}

// Two sub-microbatches per microbatch, of one or more items; orders by made-up times, which differ
// for every stage and batch; memory for some microbatches without recomputation, not for all.
Case searched(Case c, std::uint64_t batch) {
  constexpr double kKept = 1, kRoom = 150;  // bytes per token; memory for about that many tokens
  c.layout.planner = Planning::dip;
  c.layout.placements = 150;
  c.layout.encoder_microbatches = 2 * c.layout.microbatches;
  for (std::size_t m = 0; m < c.layout.modules.size(); ++m) {
    const ModuleLayout& grid = c.layout.modules[m];
    StageCosts costs{{{Recipe::none, {}}, {Recipe::full, {}}}, {}};
    for (int stage = 0; stage < grid.pp * grid.vpp; ++stage) {
      const double seconds = 1 + static_cast<double>((batch * 7 + std::uint64_t(stage) * 3) % 5);
      const WorkCurve time{0, seconds, 0.5}, message{0, 0.1, 0};
      costs.ways[0].stages.push_back({time, time, time, message, {0, kKept, 0}, {}});
      costs.ways[1].stages.push_back(
          {time, {0, 2 * seconds, 1}, time, message, {0, kKept / 8, 0}, {}});
    }
    costs.room.assign(static_cast<std::size_t>(grid.pp), kRoom);
    c.planner_costs[ModuleId(m)].stages = std::move(costs);
  }
  c.drawn = batch;
  c.name = "dip, batch " + std::to_string(batch) + ": " + c.name;
  return c;
}

Case virtual_language(Case c) {
  c.layout.modules.back().vpp = 2;
  c.name += ", VPP2";
  return c;
}

}  // namespace

namespace {

std::vector<Case> wanted_layouts() {
  constexpr auto kPhases = EncoderOrder::phases, kInterleaved = EncoderOrder::interleaved;
  std::vector<Case> wanted = {apart({}, {1, 2, 1}, k1f1b, 5),
                              apart({1, 1, 2}, {1, 2, 2}, k1f1b, 4),
                              apart({1, 2, 1}, {1, 3, 1, {2, 1, 1}}, k1f1b, 7),
                              apart({1, 1, 3}, {1, 1, 2}, k1f1b, 3),
                              apart({2, 1, 1}, {1, 1, 4}, k1f1b, 2),
                              language_first({1, 2, 1}, {2, 2, 1}, kGpipe, 4),
                              recompute(apart({1, 2, 1}, {1, 2, 2}, k1f1b, 4)),
                              frozen(apart({1, 2, 1}, {1, 2, 1}, k1f1b, 4), kEncoder),
                              two_encoders(apart({1, 2, 1}, {1, 2, 1}, k1f1b, 4)),
                              works_ahead(apart({1, 2, 1}, {1, 2, 1}, k1f1b, 6), 0, 2),
                              virtual_encoder(apart({1, 2, 1}, {1, 2, 1}, k1f1b, 4)),
                              in_order(colocated({1, 2, 1}, {1, 2, 1}, k1f1b, 4, 0), kPhases),
                              in_order(colocated({1, 1, 4}, {2, 2, 1}, k1f1b, 4, 0), kPhases),
                              in_order(colocated({1, 2, 1}, {1, 2, 1}, k1f1b, 4, 0), kInterleaved)};
  for (const Case& c : parity_matrix().cases)
    if (c.name.rfind("non-colocated", 0) == 0 && !c.text_only && !c.variant) wanted.push_back(c);
  return wanted;
}

// The legal cases, each with another batch.
std::vector<Case> legal(const std::vector<Case>& wanted, Case (*make)(Case, std::uint64_t)) {
  constexpr std::size_t kBatches = 24;
  std::vector<Case> cases;
  for (const Case& c : wanted) {
    const Case made = make(c, 1 + cases.size() % kBatches);
    if (!check_layout(make_scenario(made), made.layout)) cases.push_back(made);
  }
  return cases;
}

}  // namespace

std::vector<Case> planned_cases() { return legal(wanted_layouts(), planned); }

std::vector<Case> searched_cases() {
  constexpr auto kVirtual = ScheduleKind::interleaved;
  constexpr auto kPhases = EncoderOrder::phases, kInterleaved = EncoderOrder::interleaved;
  std::vector<Case> wanted = wanted_layouts();
  for (const Case& c :
       {in_order(colocated({2, 2, 1}, {1, 2, 2}, k1f1b, 4, 0), kPhases),
        in_order(virtual_language(colocated({1, 2, 1}, {1, 2, 1}, kVirtual, 4, 0)), kInterleaved),
        in_order(virtual_language(colocated({1, 2, 2}, {1, 2, 2}, kVirtual, 4, 0)), kPhases),
        two_encoders(in_order(colocated({1, 2, 1}, {1, 2, 1}, k1f1b, 4, 0), kInterleaved)),
        frozen(in_order(colocated({1, 2, 1}, {1, 2, 1}, k1f1b, 4, 0), kInterleaved), kEncoder)})
    wanted.push_back(c);
  return legal(wanted, searched);
}

}  // namespace polyphony::exec::testing
