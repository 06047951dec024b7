// Layouts as arrays of numbers: the form in which answers name them, and the keys of
// cached answers. Layouts with a list of actions are not supported.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "shared/model/layout.h"

namespace polyphony::sim {

nlohmann::json layout_numbers(const Layout& layout);
Layout layout_of(const nlohmann::json& numbers);

}  // namespace polyphony::sim
