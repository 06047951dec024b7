// What `simulate` says of how sure it is: interval, what it extrapolates, jitter;
// and its MFU beside what frameworks would print.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "shared/chance/belief.h"
#include "shared/chance/extrapolation.h"
#include "sim/answers/jitter.h"
#include "sim/answers/predict.h"
#include "sim/commands/command.h"

namespace polyphony::sim {

void add_chance_options(Arguments& args);

struct Chance {
  Belief belief;
  std::vector<Extrapolation> extrapolated;
  std::string other_software;  // of the profile, when the scenario names another stack
  std::optional<JitteredSteps> jittered;
  // Shares of the peak, as shared/cost/model_flops.h counts; zero: the device has no such peak.
  double mfu = 0, megatron_mfu = 0, torchtitan_mfu = 0;
};
// Refuses --jitter with a profile that knows none.
std::variant<Chance, Infeasible> find_chance(const Arguments& args, const Scenario& scenario,
                                             const Layout& layout, const Prediction& prediction,
                                             const HardwareProfile& profile);

void print_chance(const Chance& chance, const HardwareProfile& profile);
nlohmann::json to_json(const Chance& chance, const HardwareProfile& profile);

// "29.1 s to 35.4 s".
std::string interval_text(const SecondsInterval& interval);

}  // namespace polyphony::sim
