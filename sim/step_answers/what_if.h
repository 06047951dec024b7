// Baseline and modified answers of a command with --set: figures of the scenario as written, and
// with the values of --set.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/prediction/figures.h"

namespace polyphony::sim {

struct Unchanged {
  std::optional<Figures> figures;
  std::string why_not;     // why there are no figures: what the scenario lacks without the changes
  std::string layout;      // for a sweep, the best layout
  bool no_layout = false;  // there are no figures because the scenario has no layout
};

struct WhatIf {
  std::vector<std::string> set;  // the changes: "layout.microbatches=8"
  Unchanged unchanged;
  Figures changed;
};

}  // namespace polyphony::sim
