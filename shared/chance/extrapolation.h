// Finds where a prediction leaves the ranges on which its profile was fitted.
//   seen_ranges         returns the ranges of Programs: GEMM sizes (m·n·k)^(1/3), bytes of messages
//                       and collectives (inner ones too), ranks of their groups
//   find_extrapolations returns what lies outside the profile's ranges; layers and phases without a
//                       correction in a profile that corrects others; kinds of transfers that a
//                       profile with stated ranges was not fitted on
// `share` is the fraction of all kernel time (GEMMs, corrections) or of all bytes sent (messages,
// collectives), by the profile itself; the largest come first. A profile that states no range is
// not checked against it.
#pragma once

#include <string>
#include <vector>

#include "shared/hardware/hardware.h"
#include "shared/program/program.h"

namespace polyphony {

struct Extrapolation {
  std::string what;  // "GEMM sizes (m·n·k)^(1/3) up to 14900; fitted on 256 to 4096"
  double share = 0;
  std::size_t count = 0;  // kernels, messages, collectives, ops
  bool operator==(const Extrapolation&) const = default;
};

FittedRanges seen_ranges(const std::vector<const Program*>& programs);
std::vector<Extrapolation> find_extrapolations(const Program& program,
                                               const HardwareProfile& profile);

// Returns the name of the profile's stack if the scenario names another one, that is, if neither
// the stack's name nor its software text contains `wanted`. Empty if they agree or `wanted` is
// empty.
std::string other_software(const std::string& wanted, const HardwareProfile& profile);

}  // namespace polyphony
