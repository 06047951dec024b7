#include "exec/worker/prepare.h"

#include <algorithm>

#include "exec/checkpoint/checkpoint.h"
#include "shared/check/check.h"
#include "shared/cost/cost_model.h"
#include "shared/graph/compile.h"
#include "shared/graph/library_memory.h"
#include "shared/graph/memory.h"
#include "shared/lower/lower.h"
#include "shared/program/stage_name.h"
#include "shared/scenario_io/scenario_profile.h"
#include "shared/split/planned_layout.h"
#include "shared/step/step_record.h"
#include "shared/text/figure_text.h"

namespace polyphony::exec {
namespace {

// Returns the layout with the split of the checkpoint that the run resumes from, if there is one
// and it is legal.
Layout as_saved(const Scenario& scenario, const std::string& checkpoints) {
  Layout layout = *scenario.layout;
  if (is_split(scenario, layout)) return layout;
  if (const auto blocks = newest_blocks(checkpoints); blocks.size() == layout.modules.size()) {
    for (std::size_t m = 0; m < blocks.size(); ++m)
      if (layout.modules[m].blocks.empty()) layout.modules[m].blocks = blocks[m];
    // Saved with another layout: the checkpoint is loaded into this layout's stages.
    if (is_split(scenario, layout) && !check_layout(scenario, layout)) return layout;
  }
  return *scenario.layout;
}

std::optional<Infeasible> infeasible(const std::string& file, const std::string& no) {
  if (no.empty()) return {};
  return Infeasible{InputError::line(
      file, "/layout", no,
      "use more ranks on more machines, smaller microbatches, or recompute \"full\"")};
}

}  // namespace

std::vector<RankMemory> RankRoom::need_of(const Program& program) const {
  const auto compiled = compile(program);
  if (const Fault* fault = std::get_if<Fault>(&compiled))
    POLYPHONY_CHECK(false, "lowering made a Program that cannot run: " << fault->text);
  const auto& graph = std::get<Compiled>(compiled);
  const CostTable costs = price(program, graph, cluster, profile);
  return predict_needed_memory(program, estimate(program, graph, costs).timeline, cluster, profile);
}

std::string RankRoom::too_small_for(const Program& program) const {
  return too_small_for(program, need_of(program));
}

std::string RankRoom::too_small_for(const Program& program,
                                    const std::vector<RankMemory>& need) const {
  const auto worst = std::max_element(
      need.begin(), need.end(),
      [](const RankMemory& a, const RankMemory& b) { return a.needed() < b.needed(); });
  if (worst == need.end() || worst->needed() <= memory) return "";
  const Rank rank(static_cast<std::size_t>(worst - need.begin()));
  return stage_name(program, rank) + " needs " + bytes_text(worst->needed()) +
         ", but this machine has " + bytes_text(memory) + " for each of its ranks";
}

std::optional<Infeasible> check_late_plan(const Prepared& prepared, const std::string& file) {
  const Layout plain = without_planner(*prepared.scenario.layout);
  if (plain == *prepared.scenario.layout) return {};
  const Scenario& scenario = prepared.scenario;
  const std::string no = prepared.room.too_small_for(
      lower(scenario, plain, make_plan(scenario, plain), prepared.dataset->batch(0)));
  return infeasible(file, no.empty() ? no : "if a plan is late, " + no);
}

std::variant<Prepared, Infeasible> prepare(const std::string& file, const LoadText& load,
                                           const LaunchEnv& launch, const std::string& data_path,
                                           Bytes memory, const std::string& checkpoints,
                                           const std::string& phase) {
  Prepared result{read_scenario(load(file), file, load, {}, phase), nullptr, {}, {}, {}};
  const Scenario& scenario = result.scenario;
  if (!scenario.layout)
    throw InputError(file, "/layout", "is missing",
                     "add one, or let `polyphony run` choose it by the search");
  if (const auto no = check_layout(scenario, *scenario.layout))
    throw InputError(file, "/layout", no->reason, "`polyphony sweep` lists the legal layouts");
  const Layout& layout = *scenario.layout;
  require_world_size(launch, world_size(layout), file, "/layout");
  if (const auto no = check_runnable(scenario, layout))
    return Infeasible{
        InputError::line(file, "/layout", no->reason, "`polyphony simulate` predicts it")};
  result.dataset = open_dataset(scenario, data_path);
  result.scenario.data.samples = result.dataset->training();
  const HardwareProfile profile = scenario_profile(scenario, load);
  PlannedLayout planned =
      plan_layout(borrow_inputs(scenario, profile), as_saved(scenario, checkpoints));
  store_planned(planned.layout, planned.plan, result.scenario);
  result.plan = std::move(planned.plan);
  result.room = {scenario.cluster, profile, memory};
  const Program first = lower(scenario, *scenario.layout, result.plan, result.dataset->batch(0));
  result.need = result.room.need_of(first);
  if (auto no = infeasible(file, result.room.too_small_for(first, result.need)))
    return std::move(*no);
  return result;
}

}  // namespace polyphony::exec
