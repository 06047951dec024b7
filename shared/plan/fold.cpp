#include <algorithm>
#include <numeric>
#include <optional>

#include "shared/plan/plan.h"

namespace polyphony {
namespace {

Infeasible refuse(const std::string& why) {
  return {"the layout does not fold: " + why + "; predict it unfolded"};
}

bool same_ranks(const ModuleLayout& a, const ModuleLayout& b) {
  return a.first_rank == b.first_rank && a.ranks == b.ranks;
}

// Consecutive ranks of a lane.
int cell(const ModuleLayout& grid) { return grid.tp * grid.cp; }

// An encoder that runs on every rank of a pipeline.
bool spans_stages(const Branch& branch, const Branch& language) {
  return language.grid.pp > 1 && branch.grid.pp == 1 && same_ranks(branch.grid, language.grid);
}

// Whether the lanes fall into `alike` equal sets.
bool divides(const Plan& plan, int alike, std::size_t samples) {
  const Branch& language = plan.branches[plan.language];
  for (const Branch& branch : plan.branches) {
    const int lanes = branch.grid.dp();
    if (lanes % alike != 0) return false;
    if (!spans_stages(branch, language)) continue;
    // In each stage the kept ranks are whole lanes, and of all lanes that differ.
    const int width = language.grid.dp() / alike * cell(language.grid);
    if (width % cell(branch.grid) != 0) return false;
    const auto each = static_cast<int>(samples) / branch.microbatches;
    if (width / cell(branch.grid) % (lanes / std::gcd(lanes, each)) != 0) return false;
  }
  return true;
}

int sets_alike(const Plan& plan, std::size_t samples) {
  int alike = plan.branches[plan.language].grid.dp();
  while (alike > 1 && !divides(plan, alike, samples)) --alike;
  return alike;
}

Kept kept_of(const Plan& plan, const Branch& branch, bool contexts_alike) {
  const Branch& language = plan.branches[plan.language];
  const bool spans = plan.alike > 1 && spans_stages(branch, language);
  const int period = spans ? branch.grid.dp() / language.grid.pp : branch.grid.dp();
  int stride = 0;
  for (const Branch& other : plan.branches)
    if (same_ranks(branch.grid, other.grid)) stride = std::gcd(stride, other.grid.tp);
  return {period / plan.alike, period, contexts_alike ? 1 : branch.grid.cp, stride};
}

std::optional<std::string> unlike(const Scenario& scenario, const Layout& layout, const Plan& plan,
                                  const Batch& batch) {
  if (!scenario.cluster.degraded.empty()) return "some of its ranks are degraded";
  const std::vector<Sample>& samples = batch.samples;
  if (std::any_of(samples.begin(), samples.end(),
                  [&](const Sample& s) { return s.items != samples.front().items; }))
    return "samples differ, and with them what lanes do";
  const ModuleLayout& grid = plan.branches[plan.language].grid;
  if (samples.size() % static_cast<std::size_t>(grid.dp() * layout.microbatches) != 0)
    return "lanes have unequal numbers of samples";
  for (const Branch& branch : plan.branches)
    if (branch.grid.spread == Spread::images && branch.grid.dp() * branch.grid.cp > 1)
      return "images dealt one by one join all lanes";
  return {};
}

}  // namespace

std::variant<Folded, Infeasible> fold(const Scenario& scenario, const Layout& layout, Plan plan,
                                      const Batch& batch) {
  if (const auto why = unlike(scenario, layout, plan, batch)) return refuse(*why);
  plan.alike = sets_alike(plan, batch.samples.size());
  const ModuleLayout& grid = plan.branches[plan.language].grid;
  const bool contexts_alike =
      scenario.model.modules.size() == 1 && grid.tokens != TokenAssignment::contiguous;
  bool folds = plan.alike > 1;
  for (std::size_t b = 0; b < plan.branches.size(); ++b) {
    Branch& branch = plan.branches[b];
    const Kept kept = kept_of(plan, branch, contexts_alike);
    folds = folds || kept.stride > 1 || kept.contexts < branch.grid.cp;
    branch.kept = kept;
  }
  if (!folds) return refuse("no two of its ranks do the same");
  const auto of_a_set = batch.samples.size() / static_cast<std::size_t>(plan.alike);
  Batch kept{
      {batch.samples.begin(), batch.samples.begin() + static_cast<std::ptrdiff_t>(of_a_set)}};
  return Folded{std::move(plan), std::move(kept)};
}

}  // namespace polyphony
