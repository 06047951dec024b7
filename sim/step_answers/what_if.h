// The answer to a question as it is written, beside that with some of its values changed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/prediction/figures.h"

namespace polyphony::sim {

struct Unchanged {
  std::optional<Figures> figures;
  std::string why_not;  // when there are none: what the scenario lacks without the changes
  std::string layout;   // the best, of a sweep
};

struct WhatIf {
  std::vector<std::string> set;  // the changes: "layout.microbatches=8"
  Unchanged unchanged;
  Figures changed;
};

}  // namespace polyphony::sim
