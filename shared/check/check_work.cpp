#include <algorithm>
#include <optional>
#include <vector>

#include "shared/check/checks.h"
#include "shared/model/chain_grid.h"
#include "shared/plan/plan.h"
#include "shared/text/number_text.h"

namespace polyphony::checks {
namespace {

// Encoders on the language module's ranks (colocated), and those on ranks of their own
// (non-colocated).
struct Encoders {
  std::vector<ModuleId> colocated, separate;
};

// Returns the module that the language module feeds on its own ranks, if there is one.
std::optional<ModuleId> fed_colocated(const Layout& layout, ModuleId language) {
  const std::size_t next = language.value + 1;
  if (layout.placement == Placement::homogeneous || next >= layout.modules.size() ||
      !same_ranks(layout.modules[next], layout.modules[language.value]))
    return {};
  return ModuleId(next);
}

Encoders encoders_of(const Model& model, const Layout& layout, ModuleId language) {
  const ModuleLayout& grid = layout.modules[language.value];
  Encoders found;
  for (std::size_t m = 0; m < language.value && layout.placement != Placement::homogeneous; ++m) {
    if (model.modules[m].kind == ModuleKind::projector) continue;
    const ModuleLayout& own = layout.modules[m];
    (same_ranks(own, grid) ? found.colocated : found.separate).emplace_back(m);
  }
  return found;
}

// Returns the names of the schedules that allow encoder_order interleaved: "1f1b or interleaved".
std::string interleaving_schedules() {
  std::string names;
  for (const Schedule& row : kSchedules)
    if (row.interleaves_encoders) names += (names.empty() ? "" : " or ") + std::string(row.name);
  return names;
}

Verdict check_schedule(const Model& model, const Layout& layout, ModuleId language,
                       const Encoders& encoders) {
  const ModuleLayout& grid = layout.modules[language.value];
  int after = 0;  // stages of what the language module feeds
  if (layout.placement != Placement::homogeneous)
    for (std::size_t m = language.value + 1; m < model.modules.size(); ++m)
      if (!same_ranks(layout.modules[m], grid)) after = std::max(after, layout.modules[m].pp);
  const bool own_actions = !layout.actions.empty();  // check_own_actions() looks at them
  for (const ModuleId id : encoders.separate) {
    const ModuleLayout& own = layout.modules[id.value];
    if (own.vpp == 1) continue;
    const std::string subject = model.modules[id.value].name + ": ";
    if (own_actions)
      return refuse(subject + "vpp must be 1 for an encoder if the layout has actions of its own " +
                    "(got " + number(own.vpp) + ")");
    const int works = std::min(layout.microbatches, encoder_works(layout, own, grid));
    const Schedule& row = schedule(default_schedule(own.vpp));
    if (const std::string why = row.refusal({own.pp, own.vpp, works}); !why.empty())
      return refuse(subject + "virtual stages run schedule " + row.name + ", which " + why);
  }
  const std::string order = std::string("encoder_order ") + name(layout.encoder_order);
  const std::optional<ModuleId> fed = fed_colocated(layout, language);
  if (encoders.colocated.empty() && !fed && layout.encoder_order != EncoderOrder::in_turn)
    return refuse(order + " applies only to encoders on the language module's ranks; leave it out");
  if (layout.encoder_order == EncoderOrder::interleaved) {
    if (own_actions || !schedule(layout.schedule).interleaves_encoders)
      return refuse(order + " needs schedule " + interleaving_schedules() + " (got " +
                    schedule_name(layout) + "); use one of them, or encoder_order phases");
    Pipeline both{grid.pp, grid.vpp, layout.microbatches, after};
    if (!encoders.colocated.empty())
      both.virtual_stages += layout.modules[encoders.colocated.front().value].vpp;
    if (fed) both.virtual_stages += layout.modules[fed->value].vpp;
    if (const std::string why = schedule(ScheduleKind::interleaved).refusal(both); !why.empty())
      return refuse(order + " " + why);
  }
  if (own_actions) return {};
  const bool flushes = !encoders.colocated.empty() && layout.encoder_order == EncoderOrder::in_turn;
  const int works =
      flushes ? encoder_works(layout, layout.modules[encoders.colocated.front().value], grid) : 1;
  const std::string why =
      schedule(layout.schedule).refusal({grid.pp, grid.vpp, layout.microbatches / works, after});
  if (why.empty()) return {};
  return refuse(std::string("schedule ") + name(layout.schedule) + " " + why);
}

// Checks the costs by which actions are ordered, where they are stated.
Verdict check_stage_costs(const std::string& subject, const ModuleLayout& grid,
                          const ModuleCosts& costs) {
  if (!costs.stages) return {};
  const int stages = grid.pp * grid.vpp;
  for (const StageCosts::Way& way : costs.stages->ways)
    if (static_cast<int>(way.stages.size()) != stages)
      return refuse(subject + ": stage_costs lists " + number(std::int64_t(way.stages.size())) +
                    " stages, but the module has " + number(stages) + "; leave it out");
  if (const auto& room = costs.stages->room;
      !room.empty() && static_cast<int>(room.size()) != grid.pp)
    return refuse(subject + ": stage_costs lists room for " + number(std::int64_t(room.size())) +
                  " ranks, but the pipeline has " + number(grid.pp) + "; leave it out");
  return {};
}

// Checks what planner dip needs: every stage belongs to the order of one rank along a pipeline, and
// branches are joined by the rows of a microbatch alone.
Verdict check_searched(const Scenario& scenario, const Layout& layout, const Encoders& encoders) {
  const Model& model = scenario.model;
  const std::string subject = "planner dip";
  const std::vector<ModuleId> owners = chain_modules(model);
  if (layout.placement == Placement::homogeneous && owners.size() > 1)
    return refuse(
        subject +
        " orders one pipeline per module, but a homogeneous layout joins them into one; " +
        "use placement colocated");
  if (!layout.actions.empty())
    return refuse(subject + " finds the order of actions by itself; leave actions out");
  for (const ModuleId a : owners) {
    const ModuleLayout& grid = layout.modules[a.value];
    const std::string& module = model.modules[a.value].name;
    if (Verdict verdict = check_stage_costs(module, grid, costs_of(scenario.planner_costs, a)))
      return verdict;
    for (const ModuleId b : owners)
      if (same_ranks(grid, layout.modules[b.value]) && grid.pp != layout.modules[b.value].pp)
        return refuse(subject + " needs the same pp for all modules on the same ranks, but " +
                      module + " has pp " + number(grid.pp) + " and " +
                      model.modules[b.value].name + " has pp " +
                      number(layout.modules[b.value].pp));
    std::optional<ModuleId> fed;
    for (const Edge& edge : model.edges) {
      const ModuleId to = grid_owner(model, edge.to);
      if (grid_owner(model, edge.from) != a || to == a) continue;
      if (fed && fed != to)
        return refuse(subject + " supports only modules that feed one other module, but " + module +
                      " feeds " + model.modules[fed->value].name + " and " +
                      model.modules[to.value].name + "; leave planner out");
      fed = to;
    }
  }
  if (layout.encoder_microbatches > 0 && layout.encoder_microbatches % layout.microbatches != 0)
    return refuse(subject + " splits every microbatch into equally many encoder microbatches; " +
                  "encoder_microbatches must be a multiple of microbatches, " +
                  number(layout.microbatches) + " (got " + number(layout.encoder_microbatches) +
                  ")");
  if (!encoders.colocated.empty() && layout.encoder_order == EncoderOrder::in_turn)
    return refuse(subject +
                  " overlaps encoders with the language module, but encoder_order in-turn runs " +
                  "them before it; use interleaved or phases (kept if no better order is found)");
  return {};
}

Verdict check_planner(const Scenario& scenario, const Layout& layout, ModuleId language,
                      const Encoders& encoders) {
  const Model& model = scenario.model;
  if (layout.planner != Planning::dip)
    for (std::size_t m = 0; m < model.modules.size(); ++m)
      if (layout.modules[m].sub_microbatch != 1)
        return refuse(model.modules[m].name +
                      ": sub_microbatch applies only to planner dip; leave it out");
  if (layout.planner == Planning::none) return {};
  if (layout.planner == Planning::dip) return check_searched(scenario, layout, encoders);
  const std::string subject = std::string("planner ") + name(layout.planner);
  if (encoders.colocated.empty() && encoders.separate.empty())
    return refuse(subject + " applies only to encoders with grids of their own; leave it out");
  if (language.value + 1 < model.modules.size())
    return refuse(subject + " supports only models whose last module is the language module (got " +
                  model.modules.back().name + "); leave it out");
  if (!layout.actions.empty())
    return refuse(subject + " orders the encoders' actions by itself; leave actions out");
  if (layout.encoder_microbatches > 0 && layout.encoder_microbatches != layout.microbatches)
    return refuse(subject + " gives encoders as many microbatches as the language module; leave " +
                  "encoder_microbatches out");
  if (!encoders.colocated.empty() && layout.encoder_order == EncoderOrder::in_turn)
    return refuse(subject + " defers samples from one microbatch to the next, but encoder_order " +
                  "in-turn has finished a microbatch by then; use phases or interleaved");
  return {};
}

}  // namespace

Verdict check_work(const Scenario& scenario, const Layout& layout) {
  const Model& model = scenario.model;
  const ModuleId id = language_module(model);
  const ModuleLayout& language = layout.modules[id.value];
  if (layout.microbatches < 1)
    return refuse("microbatches must be at least 1 (got " + number(layout.microbatches) + ")");
  const std::int64_t works = std::int64_t{layout.microbatches} * language.dp();
  if (scenario.data.global_batch < works)
    return refuse("a global batch of " + number(scenario.data.global_batch) +
                  " samples cannot fill " + number(layout.microbatches) + " microbatches on " +
                  number(language.dp()) + " data-parallel replicas; use at most " +
                  number(std::max(1, scenario.data.global_batch / language.dp())) +
                  " microbatches");
  if (layout.encoder_microbatches < 0)
    return refuse("encoder_microbatches must not be negative (got " +
                  number(layout.encoder_microbatches) + ")");
  const Encoders encoders = encoders_of(model, layout, id);
  if (layout.encoder_microbatches > 0) {
    if (encoders.colocated.empty() && encoders.separate.empty())
      return refuse(
          "encoder_microbatches applies only to encoders with grids of their own; leave it out");
    if (layout.planner != Planning::dip && layout.microbatches % layout.encoder_microbatches != 0)
      return refuse("encoder_microbatches " + number(layout.encoder_microbatches) +
                    " does not divide " + number(layout.microbatches) +
                    " microbatches; nearest legal: " +
                    nearest_divisors(layout.microbatches, layout.encoder_microbatches));
  }
  if (Verdict verdict = check_planner(scenario, layout, id, encoders)) return verdict;
  return check_schedule(model, layout, id, encoders);
}

}  // namespace polyphony::checks
