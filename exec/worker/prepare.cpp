#include "exec/worker/prepare.h"

#include "exec/checkpoint/checkpoint.h"
#include "shared/plan/plan.h"
#include "shared/scenario/scenario_profile.h"
#include "shared/search/balanced_plan.h"
#include "shared/search/bound.h"

namespace polyphony::exec {
namespace {

std::string mebibytes(Bytes bytes) { return std::to_string(bytes.value >> 20) + " MiB"; }

// The layout with its stages split, for good: as the checkpoint that is continued has it, else as
// the scenario's profile balances them.
Layout split(const Scenario& scenario, const LoadText& load, const std::string& checkpoints) {
  Layout layout = *scenario.layout;
  if (is_split(scenario.model, layout)) return layout;
  if (const auto blocks = newest_blocks(checkpoints); blocks.size() == layout.modules.size()) {
    for (std::size_t m = 0; m < blocks.size(); ++m)
      if (layout.modules[m].blocks.empty()) layout.modules[m].blocks = blocks[m];
    // Of another layout: it is loaded into this one's stages.
    if (is_split(scenario.model, layout) && !check_layout(scenario, layout)) return layout;
  }
  const HardwareProfile profile = scenario_profile(scenario, load);
  return with_blocks(*scenario.layout, balanced_plan(scenario, *scenario.layout, profile));
}

}  // namespace

std::variant<Prepared, Infeasible> prepare(const std::string& file, const LoadText& load,
                                           const LaunchEnv& launch, const std::string& data_path,
                                           Bytes memory, const std::string& checkpoints) {
  Prepared result{read_scenario(load(file), file, load), nullptr};
  const Scenario& scenario = result.scenario;
  if (!scenario.layout)
    throw InputError(file, "/layout", "is missing",
                     "name one, or let `polyphony run` choose it from the search");
  if (const auto no = check_layout(scenario, *scenario.layout))
    throw InputError(file, "/layout", no->reason, "`polyphony sweep` lists the legal layouts");
  const Layout& layout = *scenario.layout;
  require_world_size(launch, world_size(layout), file, "/layout");
  if (const auto no = check_runnable(scenario, layout))
    return Infeasible{
        InputError::line(file, "/layout", no->reason, "`polyphony simulate` predicts it")};
  result.dataset = open_dataset(scenario, data_path);
  result.scenario.data.samples = result.dataset->training();
  result.scenario.layout = split(scenario, load, checkpoints);
  // The closed form knows one encoder in front of one language module.
  const Model& model = scenario.model;
  if (layout.placement == Placement::mixed || model.modules.size() > 3 ||
      model.modules.back().kind != ModuleKind::language)
    return result;
  // Sizes need no profile: rates enter times alone.
  const Footprint need =
      Screen(scenario, HardwareProfile{}, result.dataset->batch(0)).footprint(layout);
  if (need.memory > memory)
    return Infeasible{InputError::line(
        file, "/layout",
        need.worst + " needs " + mebibytes(need.memory) + ", this machine has " +
            mebibytes(memory) + " for each of its ranks",
        "take more ranks on more machines, smaller microbatches, or recompute \"full\"")};
  return result;
}

}  // namespace polyphony::exec
