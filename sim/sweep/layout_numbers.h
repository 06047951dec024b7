// A layout without actions of its own as numbers: what worker processes send each other.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "shared/model/layout.h"

namespace polyphony::sim {

nlohmann::json layout_numbers(const Layout& layout);
Layout layout_of(const nlohmann::json& numbers);

}  // namespace polyphony::sim
