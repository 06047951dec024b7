#include "exec/worker/prepare.h"

#include <algorithm>

#include "shared/cost/cost_model.h"
#include "shared/hardware/devices.h"
#include "shared/plan/lower.h"
#include "shared/program/compile.h"
#include "shared/program/memory.h"
#include "shared/program/stage_name.h"
#include "shared/text/figure_text.h"

namespace polyphony::exec {
namespace {

// Of the device, as shipped, else by its data sheet: it orders buffers, it judges no time.
HardwareProfile ordering_profile(Cluster cluster) {
  cluster.profile.clear();  // a file of it may be elsewhere on other ranks
  if (const auto shipped = shipped_profile(cluster)) return *shipped;
  HardwareProfile profile;
  profile.device = cluster.device;
  return profile;
}

// Memory of every rank while a step of the batch runs.
std::vector<RankMemory> step_memory(const Program& program, const Cluster& cluster) {
  const auto compiled = compile(program);
  if (const Fault* fault = std::get_if<Fault>(&compiled))
    POLYPHONY_CHECK(false, "lowering made a Program that cannot run: " << fault->text);
  const auto& graph = std::get<Compiled>(compiled);
  const CostTable costs = price(program, graph, cluster, ordering_profile(cluster));
  return predict_memory(program, estimate(program, graph, costs).timeline);
}

// Why the step needs more than a rank has, or nothing.
std::optional<Infeasible> check_memory(const Scenario& scenario, const Batch& batch, Bytes memory,
                                       const std::string& file) {
  const Layout& layout = *scenario.layout;
  const Program program = lower(scenario, layout, make_plan(scenario, layout), batch);
  const std::vector<RankMemory> need = step_memory(program, scenario.cluster);
  const auto worst =
      std::max_element(need.begin(), need.end(),
                       [](const RankMemory& a, const RankMemory& b) { return a.peak < b.peak; });
  if (worst == need.end() || worst->peak <= memory) return {};
  const Rank rank(static_cast<std::size_t>(worst - need.begin()));
  return Infeasible{InputError::line(
      file, "/layout",
      stage_name(program, rank) + " needs " + bytes_text(worst->peak) + ", this machine has " +
          bytes_text(memory) + " for each of its ranks",
      "take more ranks on more machines, smaller microbatches, or recompute \"full\"")};
}

}  // namespace

std::variant<Prepared, Infeasible> prepare(const std::string& file, const LoadText& load,
                                           const LaunchEnv& launch, const std::string& data_path,
                                           Bytes memory) {
  Prepared result{read_scenario(load(file), file, load), nullptr};
  const Scenario& scenario = result.scenario;
  if (!scenario.layout)
    throw InputError(file, "/layout", "is missing",
                     "name one, or let `polyphony run` choose it from the search");
  const Layout& layout = *scenario.layout;
  if (const auto no = check_layout(scenario, layout))
    throw InputError(file, "/layout", no->reason, "`polyphony sweep` lists the legal layouts");
  require_world_size(launch, world_size(layout), file, "/layout");
  if (const auto no = check_runnable(scenario, layout))
    return Infeasible{
        InputError::line(file, "/layout", no->reason, "`polyphony simulate` predicts it")};
  result.dataset = open_dataset(scenario, data_path);
  if (auto no = check_memory(scenario, result.dataset->batch(0), memory, file))
    return std::move(*no);
  return result;
}

}  // namespace polyphony::exec
