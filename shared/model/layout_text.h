// A whole layout in one line, for people.
#pragma once

#include <string>

#include "shared/model/layout.h"
#include "shared/model/model.h"

namespace polyphony {

// "non-colocated  vision TP1 PP1 DP2 |  language TP1 PP2 DP1  1f1b x8".
std::string describe(const Model& model, const Layout& layout);

}  // namespace polyphony
