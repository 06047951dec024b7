#include <algorithm>

#include "shared/plan/plan.h"

namespace polyphony {
namespace {

Infeasible refuse(const std::string& why) {
  return {"the layout does not fold: " + why + "; predict it unfolded"};
}

}  // namespace

std::variant<Plan, Infeasible> fold(const Scenario& scenario, const Layout& layout, Plan plan) {
  if (plan.branches.size() != 1) return refuse("its modules have grids of their own");
  if (!scenario.cluster.degraded.empty()) return refuse("some of its ranks are degraded");
  const ModuleLayout& grid = plan.branches.front().grid;
  const auto* synthetic = std::get_if<SyntheticData>(&scenario.data.source);
  const auto varies = [](const Distribution& d) { return d.kind != Distribution::Kind::constant; };
  if (synthetic == nullptr || varies(synthetic->images) || varies(synthetic->text_tokens) ||
      varies(synthetic->latents))
    return refuse("samples differ, and with them what lanes do");
  if (scenario.data.global_batch % (grid.dp() * layout.microbatches) != 0)
    return refuse("lanes have unequal numbers of samples");
  if (grid.cp > 1 && grid.tokens == TokenAssignment::contiguous)
    return refuse("contiguous runs of tokens give context-parallel ranks unequal attention");
  if (grid.cp > 1 && scenario.model.modules.size() > 1)
    return refuse("encoders deal whole items to context-parallel ranks");
  plan.branches.front().folded = true;
  return plan;
}

Batch fold(const Batch& batch, const Layout& layout) {
  const auto lanes = static_cast<std::size_t>(layout.modules.back().dp());
  return {{batch.samples.begin(),
           batch.samples.begin() + static_cast<std::ptrdiff_t>(batch.samples.size() / lanes)}};
}

}  // namespace polyphony
