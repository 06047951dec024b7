#include "shared/screen/bound.h"

#include <algorithm>
#include <optional>

#include "shared/chance/misses.h"
#include "shared/graph/library_memory.h"
#include "shared/screen/layout_memory.h"
#include "shared/screen/layout_time.h"

namespace polyphony {
namespace {

// Bounds are computed for the healthy cluster; they hold for any degraded one as well.
Scenario healthy(Scenario scenario) {
  scenario.cluster = scenario.cluster.healthy();
  return scenario;
}

std::size_t branch_of(const LayoutView& view, ModuleId module) {
  std::size_t branch = 0;
  for (std::size_t b = 0; b < view.branches.size(); ++b) {
    const std::vector<ModuleId>& held = *view.branches[b].modules;
    if (std::find(held.begin(), held.end(), module) != held.end()) branch = b;
  }
  return branch;
}

}  // namespace

// The tables behind a scenario's closed forms.
struct Screen::Impl {
  Impl(const Scenario& given, const HardwareProfile& known, const Batch& samples)
      : scenario(healthy(given)),
        profile(known),
        batch(samples),
        views(scenario, profile, batch),
        layers(scenario),
        memory(views, layers, profile.stack),
        times(views, layers, profile),
        misses(profile.certainty, scenario) {}
  Impl(const Impl&) = delete;  // its members refer to each other

  const Scenario scenario;
  const HardwareProfile profile;
  const Batch batch;
  LayoutViews views;
  StackLayers layers;
  LayoutMemory memory;
  LayoutTimes times;
  Misses misses;
  std::optional<Layout> asked;  // layout of the last footprint
  Footprint footprint;
};

Screen::Screen(const Scenario& scenario, const HardwareProfile& profile, const Batch& batch)
    : impl_(new Impl(scenario, profile, batch)) {}
Screen::~Screen() = default;

Footprint Screen::footprint(const Layout& layout) {
  impl_->asked = layout;
  return impl_->footprint = impl_->memory.worst(impl_->views.look(layout));
}

Bytes Screen::room(const Layout& layout) const {
  const Scenario& scenario = impl_->scenario;
  const Bytes limit = scenario.memory_limit();
  if (limit.value == 0) return limit;
  const Bytes libraries =
      least_library_memory(scenario.model, layout, scenario.cluster, impl_->profile);
  return std::max(Bytes(1), limit - libraries);
}

Bound Screen::bound(const Layout& layout) {
  const bool known = impl_->asked == layout;  // mostly asked for just before
  const LayoutView& view = impl_->views.look(layout);
  Bound bound = impl_->times.bound(view);
  const double factor = impl_->misses.factor(layout);
  bound.step *= factor;
  bound.busiest *= factor;
  bound.footprint = known ? impl_->footprint : impl_->memory.worst(view);
  return bound;
}

Bytes Screen::memory(const Layout& layout, ModuleId module, int stage) {
  const LayoutView& view = impl_->views.look(layout);
  return impl_->memory.of(view, {static_cast<std::uint16_t>(branch_of(view, module)),
                                 static_cast<std::uint16_t>(stage)});
}

PartBound Screen::part(const Layout& layout, ModuleId module) {
  const LayoutView& view = impl_->views.look(layout);
  const std::size_t branch = branch_of(view, module);
  PartBound part;
  impl_->times.add_part(view, branch, part);
  const double least = impl_->misses.least_factor();
  part.step *= least;
  part.least *= least;
  impl_->memory.add_part(view, branch, part);
  return part;
}

}  // namespace polyphony
