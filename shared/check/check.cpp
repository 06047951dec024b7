// The rules are grouped by subject in check_model.cpp, check_grid.cpp, check_placement.cpp and
// check_work.cpp.
#include "shared/check/check.h"

#include <algorithm>

#include "shared/check/checks.h"

namespace polyphony {

using checks::refuse;
using checks::Verdict;

std::string checks::nearest_divisors(std::int64_t value, std::int64_t asked) {
  std::int64_t below = 1, above = 0;
  for (std::int64_t d = 1; d <= value; ++d) {
    if (value % d != 0) continue;
    if (d <= asked) below = d;
    if (d > asked && above == 0) above = d;
  }
  return std::to_string(below) + (above ? " or " + std::to_string(above) : "");
}

namespace {

Verdict check_offload(const Scenario& scenario, const Layout& layout) {
  const Model& model = scenario.model;
  bool moves = false;
  for (std::size_t m = 0; m < model.modules.size(); ++m) {
    if (!layout.modules[m].offload_activations) continue;
    moves = true;
    const bool own = layout.placement != Placement::homogeneous &&
                     model.modules[m].kind != ModuleKind::projector;
    if (own && !needs_backward(model, ModuleId(m)))
      return refuse(
          model.modules[m].name +
          ": offload_activations is set, but the module runs no backward pass and saves no "
          "activations; leave it out");
  }
  for (const Actions& actions : layout.actions)
    for (const Action& action : actions) moves = moves || action.recipe == Recipe::offload;
  if (!moves || scenario.cluster.host_link.rate.value > 0 || scenario.cluster.free_links) return {};
  return refuse(
      "offload_activations needs the rate between an accelerator and its host's memory; give the "
      "cluster \"host_link\", such as \"63GBps\"");
}

}  // namespace

std::optional<Infeasible> check_layout(const Scenario& scenario, const Layout& layout) {
  const Model& model = scenario.model;
  if (layout.modules.size() != model.modules.size())
    return refuse("the layout has grids for " + std::to_string(layout.modules.size()) +
                  " modules, but the model has " + std::to_string(model.modules.size()));
  if (Verdict verdict = checks::check_model(model)) return verdict;
  int chain_blocks = 0;
  for (std::size_t m = 0; m < model.modules.size(); ++m) {
    const Module& module = model.modules[m];
    if (Verdict verdict = checks::check_grid(module, layout.modules[m])) return verdict;
    chain_blocks += module.layers;
    if (layout.placement == Placement::homogeneous || module.kind == ModuleKind::projector)
      continue;
    if (Verdict verdict = checks::check_language_alone(module, layout.modules[m])) return verdict;
    const bool head = module.kind == ModuleKind::language || module.kind == ModuleKind::diffusion;
    if (Verdict verdict = checks::check_blocks(module.name, module.layers, layout.modules[m], head))
      return verdict;
  }
  if (layout.placement == Placement::homogeneous)
    if (Verdict verdict =
            checks::check_blocks("the chain of modules", chain_blocks, layout.modules.back(), true))
      return verdict;
  if (Verdict verdict = checks::check_placement(model, layout, scenario.cluster.ranks()))
    return verdict;
  if (Verdict verdict = checks::check_work(scenario, layout)) return verdict;
  if (Verdict verdict = check_offload(scenario, layout)) return verdict;
  return checks::check_own_actions(scenario, layout);
}

namespace {

// FP8 in the executor: dense blocks, with whole GEMMs.
Verdict check_fp8_runnable(const Scenario& scenario, const Layout& layout) {
  if (scenario.training.fp8 == Fp8Scaling::off) return {};
  for (const Module& module : scenario.model.modules)
    if (module.experts > 0)
      return refuse("FP8 with experts (" + module.name +
                    ") is simulation only; the executor computes dense blocks in FP8");
  for (const ModuleLayout& module : layout.modules)
    if (module.tp_pieces > 1)
      return refuse("FP8 with tp_pieces is simulation only; remove tp_pieces or fp8");
  return {};
}

}  // namespace

std::optional<Infeasible> check_runnable(const Scenario& scenario, const Layout& layout) {
  const NumberFormat precision = scenario.training.precision;
  if (precision != NumberFormat::fp32 && precision != NumberFormat::fp64 &&
      precision != NumberFormat::bf16)
    return refuse(std::string("precision ") + name(precision) +
                  " is simulation only; the executor runs fp64, fp32 and bf16");
  for (const Module& module : scenario.model.modules)
    if (module.abstract.is)
      return refuse(module.name +
                    " is defined by its layer_times alone, which is simulation only; the executor "
                    "needs its dimensions (a preset, or hidden, heads, …)");
  return check_fp8_runnable(scenario, layout);
}

const Layout& require_layout(const Scenario& scenario) {
  if (!scenario.layout)
    throw InputError(scenario.file, "/layout", "is missing",
                     "`polyphony sweep --save DIR` writes scenarios with the best layouts");
  if (const auto no = check_layout(scenario, *scenario.layout))
    throw InputError(scenario.file, "/layout", no->reason,
                     "`polyphony sweep` lists the legal layouts");
  return *scenario.layout;
}

}  // namespace polyphony
