// Under a planner: every feature of layouts on encoders with ranks of their own, and other placements,
// over 24 batches of samples drawn by chance.
#include "shared/plan/plan.h"
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

}  // namespace

std::vector<Case> planned_cases() {
  constexpr std::size_t kBatches = 24;
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
  std::vector<Case> cases;
  for (const Case& c : wanted) {
    const Case made = planned(c, 1 + cases.size() % kBatches);
    if (!check_layout(make_scenario(made), made.layout)) cases.push_back(made);
  }
  return cases;
}

}  // namespace polyphony::exec::testing
