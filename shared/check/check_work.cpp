#include <algorithm>
#include <optional>
#include <vector>

#include "shared/check/checks.h"

namespace polyphony::checks {
namespace {

std::string number(std::int64_t value) { return std::to_string(value); }

// Encoders that have the language module's ranks too, and those with ranks of their own.
struct Encoders {
  std::vector<ModuleId> beside, apart;
};

// What the language module feeds on its own ranks, if anything.
std::optional<ModuleId> fed_beside(const Layout& layout, ModuleId language) {
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
    (same_ranks(own, grid) ? found.beside : found.apart).emplace_back(m);
  }
  return found;
}

Verdict check_schedule(const Model& model, const Layout& layout, ModuleId language,
                       const Encoders& encoders) {
  const ModuleLayout& grid = layout.modules[language.value];
  int after = 0;  // stages of what the language module feeds
  if (layout.placement != Placement::homogeneous)
    for (std::size_t m = language.value + 1; m < model.modules.size(); ++m)
      if (!same_ranks(layout.modules[m], grid)) after = std::max(after, layout.modules[m].pp);
  const bool own_actions = !layout.actions.empty();  // check_own_actions() looks at them
  for (const ModuleId id : encoders.apart) {
    const ModuleLayout& own = layout.modules[id.value];
    if (own.vpp == 1) continue;
    const std::string who = model.modules[id.value].name + ": ";
    if (own_actions) return refuse(who + "actions of the layout's own need encoders of vpp 1");
    const int works = std::min(layout.microbatches, encoder_works(layout, own, grid));
    if (const std::string why =
            schedule(ScheduleKind::interleaved).refusal({own.pp, own.vpp, works});
        !why.empty())
      return refuse(who + "virtual stages run schedule interleaved, which " + why);
  }
  const std::string order = std::string("encoder_order ") + name(layout.encoder_order);
  const std::optional<ModuleId> fed = fed_beside(layout, language);
  if (encoders.beside.empty() && !fed && layout.encoder_order != EncoderOrder::in_turn)
    return refuse(order + " is for encoders on the language module's ranks; leave it out");
  if (layout.encoder_order == EncoderOrder::interleaved) {
    if (own_actions || (layout.schedule != ScheduleKind::one_f_one_b &&
                        layout.schedule != ScheduleKind::interleaved))
      return refuse(order + " goes with schedules 1f1b and interleaved, not " +
                    schedule_name(layout) + "; use encoder_order phases");
    Pipeline both{grid.pp, grid.vpp, layout.microbatches, after};
    if (!encoders.beside.empty())
      both.virtual_stages += layout.modules[encoders.beside.front().value].vpp;
    if (fed) both.virtual_stages += layout.modules[fed->value].vpp;
    if (const std::string why = schedule(ScheduleKind::interleaved).refusal(both); !why.empty())
      return refuse(order + " " + why);
  }
  if (own_actions) return {};
  const bool flushes = !encoders.beside.empty() && layout.encoder_order == EncoderOrder::in_turn;
  const int works =
      flushes ? encoder_works(layout, layout.modules[encoders.beside.front().value], grid) : 1;
  const std::string why =
      schedule(layout.schedule).refusal({grid.pp, grid.vpp, layout.microbatches / works, after});
  if (why.empty()) return {};
  return refuse(std::string("schedule ") + name(layout.schedule) + " " + why);
}

// By what actions are ordered, where the layout says it.
Verdict check_stage_costs(const std::string& who, const ModuleLayout& grid) {
  if (!grid.stage_costs) return {};
  const int stages = grid.pp * grid.vpp;
  for (const StageCosts::Way& way : grid.stage_costs->ways)
    if (static_cast<int>(way.stages.size()) != stages)
      return refuse(who + ": stage_costs are of " + number(std::int64_t(way.stages.size())) +
                    " stages, the module has " + number(stages) + "; leave them out");
  if (const auto& room = grid.stage_costs->room;
      !room.empty() && static_cast<int>(room.size()) != grid.pp)
    return refuse(who + ": stage_costs have room of " + number(std::int64_t(room.size())) +
                  " ranks, its pipeline has " + number(grid.pp) + "; leave them out");
  return {};
}

// Every stage has to be in the order of one rank along a pipeline, and a microbatch's rows have to be
// all that joins branches.
Verdict check_searched(const Model& model, const Layout& layout, const Encoders& encoders) {
  const std::string who = "planner dip";
  std::vector<ModuleId> owners;
  for (std::size_t m = 0; m < model.modules.size(); ++m)
    if (model.modules[m].kind != ModuleKind::projector) owners.emplace_back(m);
  if (layout.placement == Placement::homogeneous && owners.size() > 1)
    return refuse(who +
                  " orders the pipelines of modules, which a homogeneous layout joins into one; " +
                  "use placement colocated");
  if (!layout.actions.empty())
    return refuse(who + " searches orders of its own; leave actions out");
  for (const ModuleId a : owners) {
    const ModuleLayout& grid = layout.modules[a.value];
    const std::string& module = model.modules[a.value].name;
    if (Verdict verdict = check_stage_costs(module, grid)) return verdict;
    for (const ModuleId b : owners)
      if (same_ranks(grid, layout.modules[b.value]) && grid.pp != layout.modules[b.value].pp)
        return refuse(who + " gives a rank one place along every pipeline, but " + module +
                      " has pp " + number(grid.pp) + " and " + model.modules[b.value].name +
                      " on the same ranks " + number(layout.modules[b.value].pp) +
                      "; give them the same");
    std::optional<ModuleId> fed;
    for (const Edge& edge : model.edges) {
      const ModuleId to = grid_owner(model, edge.to);
      if (grid_owner(model, edge.from) != a || to == a) continue;
      if (fed && fed != to)
        return refuse(who + " is for modules that feed one other, and " + module + " feeds " +
                      model.modules[fed->value].name + " and " + model.modules[to.value].name +
                      "; leave it out");
      fed = to;
    }
  }
  if (layout.encoder_microbatches > 0 && layout.encoder_microbatches % layout.microbatches != 0)
    return refuse(who + " cuts each of " + number(layout.microbatches) +
                  " microbatches into as many works of an encoder; encoder_microbatches " +
                  number(layout.encoder_microbatches) + " is no multiple of that");
  if (!encoders.beside.empty() && layout.encoder_order == EncoderOrder::in_turn)
    return refuse(who +
                  " runs encoders beside the language module, encoder_order in_turn before it; " +
                  "use interleaved or phases, which holds where nothing better is found");
  return {};
}

Verdict check_planner(const Model& model, const Layout& layout, ModuleId language,
                      const Encoders& encoders) {
  if (layout.planner != Planning::dip)
    for (std::size_t m = 0; m < model.modules.size(); ++m)
      if (layout.modules[m].sub_microbatch != 1)
        return refuse(model.modules[m].name + ": sub_microbatch is for planner dip; leave it out");
  if (layout.planner == Planning::none) return {};
  if (layout.planner == Planning::dip) return check_searched(model, layout, encoders);
  const std::string who = std::string("planner ") + name(layout.planner);
  if (encoders.beside.empty() && encoders.apart.empty())
    return refuse(who + " is for encoders with grids of their own; leave it out");
  if (language.value + 1 < model.modules.size())
    return refuse(who + " is for models that end with their language module, not with " +
                  model.modules.back().name + "; leave it out");
  if (!layout.actions.empty())
    return refuse(who + " makes its own order of the encoders' actions; leave actions out");
  if (layout.encoder_microbatches > 0 && layout.encoder_microbatches != layout.microbatches)
    return refuse(who + " deals encoders as many microbatches as the language module; leave " +
                  "encoder_microbatches out");
  if (!encoders.beside.empty() && layout.encoder_order == EncoderOrder::in_turn)
    return refuse(who + " defers samples from one microbatch to the next, which encoder_order " +
                  "in_turn has done with by then; use phases or interleaved");
  return {};
}

}  // namespace

Verdict check_work(const Scenario& scenario, const Layout& layout) {
  const Model& model = scenario.model;
  const ModuleId id = language_module(model);
  const ModuleLayout& language = layout.modules[id.value];
  if (layout.microbatches < 1) return refuse("microbatches must be at least 1");
  const std::int64_t works = std::int64_t{layout.microbatches} * language.dp();
  if (scenario.data.global_batch < works)
    return refuse("a global batch of " + number(scenario.data.global_batch) +
                  " samples cannot fill " + number(layout.microbatches) + " microbatches on " +
                  number(language.dp()) + " data-parallel lanes; at most " +
                  number(std::max(1, scenario.data.global_batch / language.dp())) +
                  " microbatches");
  if (layout.encoder_microbatches < 0) return refuse("encoder_microbatches must not be negative");
  const Encoders encoders = encoders_of(model, layout, id);
  if (layout.encoder_microbatches > 0) {
    if (encoders.beside.empty() && encoders.apart.empty())
      return refuse("encoder_microbatches is for encoders with grids of their own; leave it out");
    if (layout.planner != Planning::dip && layout.microbatches % layout.encoder_microbatches != 0)
      return refuse("encoder_microbatches " + number(layout.encoder_microbatches) +
                    " does not divide " + number(layout.microbatches) +
                    " microbatches; nearest legal: " +
                    nearest_divisors(layout.microbatches, layout.encoder_microbatches));
  }
  if (Verdict verdict = check_planner(model, layout, id, encoders)) return verdict;
  return check_schedule(model, layout, id, encoders);
}

}  // namespace polyphony::checks
