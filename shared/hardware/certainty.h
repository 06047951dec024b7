// How far the predictions of a hardware profile can be trusted. This is a part of the profile
// (shared/hardware/hardware.h), used by shared/chance/belief.h (intervals),
// shared/chance/extrapolation.h and shared/chance/jitter.h. JSON: shared/hardware/certainty_json.h.
//   errors        independent error components. Each is one standard deviation: the relative change
//                 of the parameters that vary together, by their JSON keys ("gemm_efficiency",
//                 "stack.traffic", "corrections.decoder_block.forward"). A component with one key
//                 is that parameter's standard error. One with several keys is a principal axis:
//                 the fit could not separate them.
//   residual      relative deviation that no parameter explains; absent: the remainder of the
//                 profile's step_error
//   layout_error  relative deviation between the errors of two layouts, for each factor of two by
//                 which the layouts differ (shared/chance/belief.h); absent: unknown
//   tensor_error  the same for a factor of two in tensor parallelism; absent: as layout_error
//   freedom       degrees of freedom of a Student's t distribution, of which the deviations are the
//                 scales; 0: normal distribution
//   footing       calibration basis: which measurements of its stack and device the profile rests
//                 on
//   misses        measured steps that the parameters do not explain (shared/chance/misses.h)
//   fitted        the range of sizes that it was fitted on; answers outside it are extrapolated
//   jitter        how much the time of a repeated op varies; absent: unknown
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "shared/enum_names.h"
#include "shared/model/layout.h"

namespace polyphony {

enum class ActivityKind : std::uint8_t { compute, message, collective };
constexpr auto names(ActivityKind) {
  return names_of<ActivityKind>("compute", "message", "collective");
}
inline constexpr std::size_t kActivityKinds = static_cast<std::size_t>(last_of(ActivityKind{})) + 1;

// Log-normal variation: a repeated op lasts its median · exp(step · Z + op · z), where Z is one
// standard normal number per step and kind of activity, and z one per op.
struct Spreading {
  double step = 0;
  double op = 0;
  bool operator==(const Spreading&) const = default;
};
struct Jitter {
  int steps = 0;  // number of measured steps
  std::array<Spreading, kActivityKinds> of{};
  bool operator==(const Jitter&) const = default;
};

// A closed interval of fitted values.
struct FittedRange {
  double low = 0, high = 0;
  bool holds(double value) const { return value >= low && value <= high; }
  bool operator==(const FittedRange&) const = default;
};
// Absent: no such op was in the measurements, or the profile does not state the range.
struct FittedRanges {
  std::optional<FittedRange> gemm_size;         // (m·n·k)^(1/3), elements
  std::optional<FittedRange> message_bytes;     // point to point
  std::optional<FittedRange> collective_bytes;  // the whole array
  std::optional<FittedRange> ranks;             // size of a collective's group
  bool operator==(const FittedRanges&) const = default;
};

// Calibration basis of a profile: whether published or own measurements of its software stack and
// of its device were fitted.
enum class Footing : std::uint8_t {
  stated,            // the profile file states its own numbers; nothing is known about a fit
  known,             // calibrated: measurements of both the stack and the device were fitted
  foreign,           // uncalibrated stack: only measurements of the device were fitted
  borrowed,          // borrowed fit: the stack was fitted, but on another device with its own fit;
                     // or the device's own fit rests on too few measurements
  foreign_borrowed,  // uncalibrated stack, and such a fit
};
constexpr auto names(Footing) {
  return names_of<Footing>("stated", "known", "foreign", "borrowed", "foreign and borrowed");
}

using ParameterError = std::map<std::string, double>;

// A measured step that the profile, with its parameters as they are, does not explain.
struct KnownMiss {
  std::string source;           // of the measurement
  std::string model;            // measured_text() of the scenario that was run
  Layout layout;                // what layout_distance() reads of it
  double miss = 0;              // ln(measured / predicted)
  double noise = 0;             // relative deviation of the measurement
  std::vector<double> effects;  // of each of the profile's errors on this step
  bool operator==(const KnownMiss&) const = default;
};

struct Certainty {
  std::string source;  // where these numbers come from
  std::vector<ParameterError> errors;
  std::optional<double> residual;
  std::optional<double> layout_error, tensor_error;
  int freedom = 0;
  std::vector<KnownMiss> misses;
  Footing footing = Footing::stated;
  FittedRanges fitted;
  std::optional<Jitter> jitter;
  bool operator==(const Certainty&) const = default;
};

}  // namespace polyphony
