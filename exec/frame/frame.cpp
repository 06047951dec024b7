#include "exec/frame/frame.h"

#include <optional>

#include "shared/error.h"

namespace polyphony::exec {

LocalParameter* Layer::find(const std::string& name) const {
  const auto found = parameters.find(name);
  return found == parameters.end() ? nullptr : found->second;
}

LocalParameter* Layer::at(const std::string& name) const {
  LocalParameter* parameter = find(name);
  POLYPHONY_CHECK(parameter != nullptr, "a " << polyphony::name(kind) << " without " << name);
  return parameter;
}

Recompute Frame::again(const Layer& layer) const {
  const std::optional<Recompute> said = recompute_of(recipe);
  return said ? recompute_of(layer.kind, layer.position, *said, kAllLayers) : layer.recompute;
}

}  // namespace polyphony::exec
