#include <algorithm>

#include "shared/plan/checks.h"

namespace polyphony::checks {
namespace {

std::string number(std::int64_t value) { return std::to_string(value); }

// Encoder work items, where an encoder has the language module's ranks too; else 0.
int shared_works(const Model& model, const Layout& layout, ModuleId language) {
  const ModuleLayout& grid = layout.modules[language.value];
  if (layout.placement == Placement::homogeneous) return 0;
  for (std::size_t m = 0; m < language.value; ++m)
    if (model.modules[m].kind != ModuleKind::projector &&
        layout.modules[m].first_rank == grid.first_rank && layout.modules[m].ranks == grid.ranks)
      return layout.encoder_microbatches > 0 ? layout.encoder_microbatches
             : grid.pp == 1                  ? layout.microbatches
                                             : 1;
  return 0;
}

Verdict check_schedule(const Model& model, const Layout& layout, ModuleId language, int works) {
  const ModuleLayout& grid = layout.modules[language.value];
  int after = 0;  // stages of what the language module feeds
  if (layout.placement != Placement::homogeneous)
    for (std::size_t m = language.value + 1; m < model.modules.size(); ++m)
      after = std::max(after, layout.modules[m].pp);
  const int flush = works > 0 ? layout.microbatches / works : layout.microbatches;
  if (!layout.turns.empty()) return {};  // check_own_turns() looks at them
  const std::string why = schedule(layout.schedule).refusal({grid.pp, grid.vpp, flush, after});
  if (why.empty()) return {};
  return refuse(std::string("schedule ") + name(layout.schedule) + " " + why);
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
  const int shared = shared_works(model, layout, id);
  if (layout.encoder_microbatches > 0) {
    if (shared == 0)
      return refuse("encoder_microbatches applies to colocated layouts only; leave it out");
    if (layout.microbatches % layout.encoder_microbatches != 0)
      return refuse("encoder_microbatches " + number(layout.encoder_microbatches) +
                    " does not divide " + number(layout.microbatches) +
                    " microbatches; nearest legal: " +
                    nearest_divisors(layout.microbatches, layout.encoder_microbatches));
  }
  return check_schedule(model, layout, id, shared);
}

}  // namespace polyphony::checks
