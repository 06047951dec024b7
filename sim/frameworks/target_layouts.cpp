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

// Keeps those values of a list that are allowed; an empty list stands for all, in either. If none
// of its values is allowed, the list remains: no layout of it will run.
template <class T>
void restrict_list(std::vector<T>& list, const std::vector<T>& allowed) {
  std::vector<T> kept;
  for (const T& value : list.empty() ? allowed : list)
    if (std::find(allowed.begin(), allowed.end(), value) != allowed.end()) kept.push_back(value);
  if (!kept.empty()) list = std::move(kept);
}

struct Limits {  // empty: all
  std::vector<Placement> placements;
  std::vector<ScheduleKind> schedules;
  std::vector<Shard> shards;
  std::vector<ContextAttention> attention;
};

// What emit_megatron() and emit_torchtitan() refuse, whatever the rest of the layout is.
Limits limits_of(const TargetVersion& target) {
  const std::vector<ScheduleKind> megatron{ScheduleKind::one_f_one_b, ScheduleKind::interleaved};
  switch (target.target) {
    case Target::megatron_lm:
      return {{Placement::homogeneous}, megatron, {}, {}};
    case Target::megatron_bridge:
      return {{Placement::homogeneous, Placement::non_colocated}, megatron, {}, {}};
    case Target::ms_swift:
      return {{Placement::homogeneous}, megatron, {Shard::none, Shard::optimizer}, {}};
    case Target::torchtitan:
      return {{Placement::homogeneous},
              {ScheduleKind::gpipe, ScheduleKind::one_f_one_b, ScheduleKind::interleaved,
               ScheduleKind::interleaved_zero_bubble, ScheduleKind::zero_bubble_v,
               ScheduleKind::dualpipe_v},
              {Shard::none, Shard::gradients, Shard::full},
              {ContextAttention::all_gather}};
  }
  return {};
}

// Megatron-LM before pipeline layouts: only the first and the last stage have sizes of their own.
bool few_splits(const TargetVersion& target) {
  return target == Target::megatron_lm && target.before({0, 13, 0});
}

// Returns even stages, or of several numbers of blocks on the inner stages the one whose first and
// last stage differ the least from it; nothing if there is none.
std::optional<Layout> with_first_and_last(const Scenario& scenario, Layout layout,
                                          const TargetVersion& target) {
  ModuleLayout& grid = layout.modules.back();
  const int stages = grid.pp * grid.vpp, blocks = scenario.model.modules.back().layers;
  std::vector<std::vector<int>> splits;
  for (const int inner : {blocks / stages, blocks / stages + 1}) {
    const int ends = blocks - inner * (stages - 2);
    if (stages < 2 || ends < 2) continue;
    std::vector<int> split(static_cast<std::size_t>(stages), inner);
    split.front() = (ends + 1) / 2;
    split.back() = ends / 2;  // it has the head
    splits.push_back(split);
  }
  std::stable_sort(splits.begin(), splits.end(), [](const auto& a, const auto& b) {
    return std::max(a.front(), a[a.size() / 2]) < std::max(b.front(), b[b.size() / 2]);
  });
  for (const std::vector<int>& split : splits) {
    grid.blocks = split;
    if (!check_layout(scenario, layout) && runs(scenario, layout, target)) return layout;
  }
  return {};
}

// Returns the layout, or the same with other stages, if the framework can run it.
std::optional<Layout> split_form(const PlanInputs& inputs, const Layout& layout,
                                 const TargetVersion& target) {
  const Scenario& scenario = inputs.scenario();
  const auto form_if_runs = [&](const Layout& form) {
    return runs(scenario, form, target) ? std::optional(form) : std::nullopt;
  };
  const bool chain = leaves_encoder_stage(scenario.model, layout);
  if (is_split(scenario, layout) || !(chain || few_splits(target))) return form_if_runs(layout);
  if (chain && !runs(scenario, layout, target)) return {};  // the split does not matter
  const Layout planned =
      with_blocks(layout, balanced_plan(scenario, layout, inputs.profile(), inputs.sizes()));
  if (runs(scenario, planned, target)) return layout;
  if (!chain) return with_first_and_last(scenario, layout, target);
  const std::optional<Layout> split = with_encoder_stage(scenario, layout, inputs.profile(),
                                                         inputs.sizes(), scenario.memory_limit());
  return split ? form_if_runs(*split) : std::nullopt;
}

}  // namespace

std::optional<Layout> runnable_form(const PlanInputs& inputs, const Layout& layout,
                                    const TargetVersion& target) {
  if (std::optional<Layout> form = split_form(inputs, layout, target)) return form;
  Layout whole = layout;
  for (ModuleLayout& grid : whole.modules) grid.recompute_blocks.clear();
  return whole == layout ? std::nullopt : split_form(inputs, whole, target);
}

Scenario restricted_to(const TargetVersion& target, Scenario scenario) {
  const Limits limits = limits_of(target);
  if (!scenario.search) scenario.search.emplace();
  Search& search = *scenario.search;
  search.modules.resize(scenario.model.modules.size());
  restrict_list(search.placement, limits.placements);
  restrict_list(search.schedule, limits.schedules);
  for (ModuleSearch& module : search.modules) restrict_list(module.shard, limits.shards);
  restrict_list(search.modules[language_module(scenario.model).value].cp_attention,
                limits.attention);
  return scenario;
}

SweepTarget sweep_target(const TargetVersion& target) {
  return {target_text(target),
          [target](const PlanInputs& inputs, const Layout& layout) {
            return runnable_form(inputs, layout, target);
          },
          [target](Scenario scenario) { return restricted_to(target, std::move(scenario)); }};
}

}  // namespace polyphony::sim
