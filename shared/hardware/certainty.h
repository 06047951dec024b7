// How far a hardware profile can be believed: part of it (shared/hardware/hardware.h).
//   errors        independent ways to be off, one standard deviation each: relative change of the
//                 parameters that move together, by their keys in JSON ("gemm_efficiency",
//                 "stack.traffic", "corrections.decoder_block.forward"). One key: its standard
//                 error. Several: a fit could not tell them apart (a principal axis).
//   residual      relative deviation of what no parameter explains; none: what is missing to the
//                 profile's step_error
//   layout_error  relative deviation of the difference between two layouts' misses, for one doubling
//                 by which the layouts differ (shared/chance/belief.h); none: not known
//   tensor_error  the same for a doubling of tensor parallelism; none: as layout_error
//   freedom       degrees of freedom of Student's t, whose scale the deviations are; 0: normal
//   footing      what the profile knows of the stack and the device that it stands for
//   fitted        what the numbers were fitted on; beyond it an answer extrapolates
//   jitter        how repeated ops spread; none: not known
// Used by shared/chance/belief.h (intervals), shared/chance/extrapolation.h, shared/chance/jitter.h.
// JSON: shared/hardware/certainty_json.h.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace polyphony {

enum class ActivityKind : std::uint8_t { compute, message, collective };
constexpr ActivityKind last_of(ActivityKind) { return ActivityKind::collective; }
inline constexpr std::size_t kActivityKinds = static_cast<std::size_t>(last_of(ActivityKind{})) + 1;
const char* name(ActivityKind kind);

// Log-normal: a repeated op lasts its median · exp(step · Z + op · z), Z one standard normal number
// a step and kind, z one an op.
struct Spreading {
  double step = 0;
  double op = 0;
  bool operator==(const Spreading&) const = default;
};
struct Jitter {
  int steps = 0;  // that it was measured on
  std::array<Spreading, kActivityKinds> of{};
  bool operator==(const Jitter&) const = default;
};

// Closed; absent: nothing of the kind was seen, or nothing is stated.
struct FittedRange {
  double low = 0, high = 0;
  bool holds(double value) const { return value >= low && value <= high; }
  bool operator==(const FittedRange&) const = default;
};
struct FittedRanges {
  std::optional<FittedRange> gemm_size;         // (m·n·k)^(1/3), elements
  std::optional<FittedRange> message_bytes;     // point to point
  std::optional<FittedRange> collective_bytes;  // the whole array
  std::optional<FittedRange> ranks;             // of a collective's group
  bool operator==(const FittedRanges&) const = default;
};

enum class Footing : std::uint8_t {
  stated,            // by whoever made the profile
  known,             // rows of the stack and of the device were fitted
  foreign,           // of the device alone
  borrowed,          // of the stack alone: the device has another one's fit
  foreign_borrowed,  // of neither
};
constexpr Footing last_of(Footing) { return Footing::foreign_borrowed; }
const char* name(Footing footing);

using ParameterError = std::map<std::string, double>;

struct Certainty {
  std::string source;
  std::vector<ParameterError> errors;
  std::optional<double> residual;
  std::optional<double> layout_error, tensor_error;
  int freedom = 0;
  Footing footing = Footing::stated;
  FittedRanges fitted;
  std::optional<Jitter> jitter;
  bool operator==(const Certainty&) const = default;
};

}  // namespace polyphony
