// Where an answer leaves what its profile was fitted on, by name.
//   seen_ranges         of Programs: sizes of matrix products (m·n·k)^(1/3), bytes of messages and
//                       collectives (inner ones too), ranks of their groups
//   find_extrapolations what of a Program lies outside the profile's ranges; layers and phases
//                       without a correction in a profile that corrects others; kinds of work that
//                       a profile with stated ranges has never seen
// `share`: of all kernel time (products, corrections) or of all bytes sent (messages, collectives),
// by the profile itself; the largest first. A profile that states no range is not judged by it.
#pragma once

#include <string>
#include <vector>

#include "shared/hardware/hardware.h"
#include "shared/program/program.h"

namespace polyphony {

struct Extrapolation {
  std::string what;  // "matrix products up to 14,900 elements a side; fitted on 256 to 4,096"
  double share = 0;
  std::size_t count = 0;  // kernels, messages, collectives, ops
  bool operator==(const Extrapolation&) const = default;
};

FittedRanges seen_ranges(const std::vector<const Program*>& programs);
std::vector<Extrapolation> find_extrapolations(const Program& program,
                                               const HardwareProfile& profile);

// The profile's stack, when the scenario names another: neither its stack's name nor its software's
// text holds what the scenario says. Empty: they agree, or the scenario says nothing.
std::string other_software(const std::string& wanted, const HardwareProfile& profile);

}  // namespace polyphony
