#include "shared/chance/jitter.h"

#include <algorithm>
#include <cmath>

#include "shared/error.h"
#include "shared/random.h"

namespace polyphony {
namespace {

ActivityKind kind_of(NodeKind kind) {
  switch (kind) {
    case NodeKind::message:
    case NodeKind::copy:
      return ActivityKind::message;
    case NodeKind::collective:
      return ActivityKind::collective;
    case NodeKind::join:
    case NodeKind::compute:
      return ActivityKind::compute;
  }
  return ActivityKind::compute;
}

}  // namespace

void draw_jitter(const Compiled& compiled, const CostTable& costs, const Jitter& jitter,
                 std::uint64_t seed, CostTable& drawn) {
  POLYPHONY_CHECK(costs.nodes.size() == compiled.nodes.size(),
                  costs.nodes.size() << " costs, " << compiled.nodes.size() << " nodes");
  drawn = costs;
  // Separate random streams, so that steps and ops never share a number.
  const std::uint64_t steps = random_bits(seed, 0), ops = random_bits(seed, 1);
  double common[kActivityKinds];
  for (std::size_t kind = 0; kind < kActivityKinds; ++kind)
    common[kind] = jitter.of[kind].step * random_normal(steps, kind);
  for (std::size_t n = 0; n < drawn.nodes.size(); ++n) {
    const auto kind = static_cast<std::size_t>(kind_of(compiled.nodes[n].kind));
    if (compiled.nodes[n].kind == NodeKind::join) continue;
    const double factor = std::exp(common[kind] + jitter.of[kind].op * random_normal(ops, n));
    NodeCost& cost = drawn.nodes[n];
    cost.duration *= factor;
    cost.delay *= factor;
    for (auto i = cost.flows.begin; i < cost.flows.end; ++i) {
      Bytes& bytes = drawn.flows[i].bytes;
      bytes = Bytes(std::llround(static_cast<double>(bytes.value) * factor));
    }
  }
}

CostTable draw_jitter(const Compiled& compiled, const CostTable& costs, const Jitter& jitter,
                      std::uint64_t seed) {
  CostTable drawn;
  draw_jitter(compiled, costs, jitter, seed, drawn);
  return drawn;
}

std::vector<Seconds> jittered_steps(const Compiled& compiled, const CostTable& costs,
                                    const Jitter& jitter, std::uint64_t first, std::size_t count) {
  std::vector<Seconds> steps;
  CostTable drawn;
  for (std::size_t i = 0; i < count; ++i) {
    draw_jitter(compiled, costs, jitter, first + i, drawn);
    steps.push_back(estimate_step(compiled, drawn).step());
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

}  // namespace polyphony
