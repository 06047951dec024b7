// The answer to the question as it is written, beside that with --set.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "sim/answers/predict.h"
#include "sim/commands/command.h"

namespace polyphony::sim {

struct Unchanged {
  std::optional<Figures> figures;
  std::string why_not;  // when there are none: what the scenario lacks without the changes
  std::string layout;   // the best, of a sweep
};

// Of the layout of the scenario at `path`, predicted as the changed one is.
Unchanged answer_unchanged(const std::string& path, const ProfileChoice& profile,
                           Predictor predictor);

// A line a figure: as written, changed, difference.
std::string side_by_side(const Unchanged& unchanged, const Figures& changed);
nlohmann::json to_json(const Unchanged& unchanged, const Figures& changed,
                       const std::vector<Override>& overrides);
// Of one prediction: dollars and kWh, of a step and of a million tokens; null: not known.
nlohmann::json spent_json(const Figures& figures);
nlohmann::json texts_of(const std::vector<Override>& overrides);

}  // namespace polyphony::sim
