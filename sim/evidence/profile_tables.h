// Hardware profiles as tables: one, two beside each other, and one held against what is plausible.
//   deviation  relative, of the profile's stated errors (shared/hardware/certainty.h); none: not stated
//   plausible  no further than kFar times beyond what shipped profiles of its kind (with NCCL, without) have,
//              nor known worse than to a factor of e; what the reader refuses cannot stand here
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "shared/hardware/hardware.h"

namespace polyphony::sim {

inline constexpr double kFar = 3;  // assumed

struct ShownParameter {
  std::string key;
  double value = 0;
  std::optional<double> deviation;
};
// Every parameter but corrections of 1.
std::vector<ShownParameter> parameters_of(const HardwareProfile& profile);

struct ParameterDifference {
  std::string key;
  double first = 0, second = 0;
  std::optional<double> deviations;  // ln(second / first) over both's deviations together
};
// Those that differ.
std::vector<ParameterDifference> differences_of(const HardwareProfile& first,
                                                const HardwareProfile& second);

// A line each.
std::vector<std::string> implausible(const HardwareProfile& profile);

nlohmann::json shown_json(const HardwareProfile& profile);
nlohmann::json difference_json(const HardwareProfile& first, const HardwareProfile& second);
std::string shown_schema();       // of `polyphony profile show`
std::string difference_schema();  // of `polyphony profile diff`

}  // namespace polyphony::sim
