#include "sim/frameworks/target_layouts.h"

#include <algorithm>

#include "shared/check/check.h"
#include "shared/split/balanced_plan.h"
#include "shared/split/encoder_stage.h"
#include "sim/frameworks/emit.h"

namespace polyphony::sim {
namespace {

bool runs(const Scenario& scenario, const Layout& layout, const TargetVersion& target) {
  return emit(scenario, layout, target).cannot.empty();
}

// Keeps those values of a list that are allowed; an empty list stands for all. If none is allowed,
// the list remains: no layout of it will run.
template <class T>
void restrict_list(std::vector<T>& list, const std::vector<T>& allowed) {
  std::vector<T> kept;
  for (const T& value : list.empty() ? allowed : list)
    if (std::find(allowed.begin(), allowed.end(), value) != allowed.end()) kept.push_back(value);
  if (!kept.empty()) list = std::move(kept);
}

struct Limits {
  std::vector<Placement> placements;
  std::vector<ScheduleKind> schedules;
  std::vector<Shard> shards;
  std::vector<ContextAttention> attention;  // empty: all
};

// What emit_megatron() and emit_torchtitan() refuse, whatever the rest of the layout is.
Limits limits_of(const TargetVersion& target) {
  const std::vector<ScheduleKind> megatron{ScheduleKind::one_f_one_b, ScheduleKind::interleaved};
  switch (target.target) {
    case Target::megatron_lm:
      return {{Placement::homogeneous},
              megatron,
              {Shard::none, Shard::optimizer, Shard::gradients, Shard::full},
              {}};
    case Target::megatron_bridge:
      return {{Placement::homogeneous, Placement::non_colocated},
              megatron,
              {Shard::none, Shard::optimizer, Shard::gradients, Shard::full},
              {}};
    case Target::ms_swift:
      return {{Placement::homogeneous}, megatron, {Shard::none, Shard::optimizer}, {}};
    case Target::torchtitan:
      return {{Placement::homogeneous},
              {ScheduleKind::gpipe, ScheduleKind::one_f_one_b, ScheduleKind::interleaved,
               ScheduleKind::zero_bubble_v, ScheduleKind::dualpipe_v},
              {Shard::none, Shard::gradients, Shard::full},
              {ContextAttention::all_gather}};
  }
  return {};
}

}  // namespace

std::optional<Layout> runnable_form(const PlanInputs& inputs, const Layout& layout,
                                    const TargetVersion& target) {
  const Scenario& scenario = inputs.scenario();
  if (!runs(scenario, layout, target)) return {};
  if (leaves_encoder_stage(scenario.model, layout)) {
    const std::optional<Layout> split =
        with_encoder_stage(scenario, layout, inputs.profile(), inputs.sizes());
    return split && runs(scenario, *split, target) ? split : std::nullopt;
  }
  // Before pipeline layouts, Megatron-LM had few ways to split blocks into stages.
  if (target.target != Target::megatron_lm || !target.before({0, 13, 0}) ||
      is_split(scenario, layout))
    return layout;
  const Layout planned =
      with_blocks(layout, balanced_plan(scenario, layout, inputs.profile(), inputs.sizes()));
  if (runs(scenario, planned, target)) return layout;
  Layout even = layout;
  ModuleLayout& grid = even.modules.back();
  const int stages = grid.pp * grid.vpp, blocks = scenario.model.modules.back().layers;
  if (blocks % stages != 0) return {};
  grid.blocks.assign(static_cast<std::size_t>(stages), blocks / stages);
  return check_layout(scenario, even) ? std::nullopt : std::optional(even);
}

Scenario restricted_to(const TargetVersion& target, Scenario scenario) {
  const Limits limits = limits_of(target);
  if (!scenario.search) scenario.search.emplace();
  Search& search = *scenario.search;
  search.modules.resize(scenario.model.modules.size());
  restrict_list(search.placement, limits.placements);
  restrict_list(search.schedule, limits.schedules);
  for (ModuleSearch& module : search.modules) restrict_list(module.shard, limits.shards);
  if (!limits.attention.empty())
    restrict_list(search.modules[language_module(scenario.model).value].cp_attention,
                  limits.attention);
  return scenario;
}

SweepTarget sweep_target(const TargetVersion& target) {
  return {[target](const PlanInputs& inputs, const Layout& layout) {
            return runnable_form(inputs, layout, target);
          },
          [target](Scenario scenario) { return restricted_to(target, std::move(scenario)); }};
}

}  // namespace polyphony::sim
