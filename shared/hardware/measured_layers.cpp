#include "shared/hardware/measured_layers.h"

namespace polyphony {
namespace {

// Returns which share of the times of `entry` the layer at `position` takes.
std::optional<double> share_of(const MeasuredLayers& entry, const Module& module, int position) {
  const bool projector = module.kind == ModuleKind::projector;  // one layer, counted as a block
  const int blocks = projector ? 1 : module.layers, block = projector ? 0 : position - 1;
  const int end = entry.last < 0 ? blocks : entry.last;
  if (block < 0 || block >= blocks) {
    const bool input = block < 0;
    if (entry.part == (input ? MeasuredPart::input : MeasuredPart::output)) return 1;
    const bool joined = entry.stage && (input ? entry.first == 0 : end == blocks);
    return joined ? std::optional(0.0) : std::nullopt;
  }
  if (entry.part != MeasuredPart::blocks || block < entry.first || block >= end) return {};
  return entry.stage ? 1.0 / (end - entry.first) : 1.0;
}

}  // namespace

Seconds MeasuredTime::of(std::int64_t tokens) const {
  if (tokens == 0) return {};
  const auto x = static_cast<double>(tokens);
  return constant + per_token * x + per_token_squared * (x * x);
}

std::optional<MeasuredLayer> measured_layer(const MeasuredModules& modules, const Module& module,
                                            int position, int tp, int cp) {
  const auto found = modules.find(module.name);
  if (found == modules.end()) return {};
  for (const MeasuredLayers& entry : found->second) {
    if ((entry.tp > 0 && entry.tp != tp) || (entry.cp > 0 && entry.cp != cp)) continue;
    if (const auto share = share_of(entry, module, position)) return MeasuredLayer{&entry, *share};
  }
  return {};
}

}  // namespace polyphony
