// Expresses the cost model's time of each activity of a Program as a linear function of the
// profile's parameters. These are the rows of a calibration.
//
//   time = base + Σ_p (slope_p + product_p · dispatch) · θ_p
//   θ: op_overhead, dispatch, message_latency, 1/message_efficiency, collective_latency,
//      1/collective_efficiency, 1/fabric_efficiency, optimizer_overhead,
//      1/optimizer_bytes_efficiency, and a correction per (layer kind, phase)
//
// Slopes are differences of price() itself between probe profiles, so that fit and prediction
// always use the same cost model. A ring over several nodes is as slow as its slower kind of link:
// only the efficiency of that link is fitted from it.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "shared/cost/cost_model.h"
#include "shared/graph/compile.h"
#include "traces/calibrate/fit.h"

namespace polyphony::traces {

using CorrectionKey = std::pair<LayerKind, Phase>;

// Returns true if the profile gives the time of a layer of the op (HardwareProfile::layer_times).
// The op's time then does not depend on the parameters, and does not inform them.
bool is_given(const Program& program, const Compute& compute, const HardwareProfile& profile);

// Numbers the parameters: first the fixed ones, then the corrections in the order of their keys.
class ParameterList {
 public:
  enum Fixed : std::size_t {
    op_overhead,
    dispatch,
    message_latency,
    message_slowness,  // 1 / efficiency
    collective_latency,
    collective_slowness,
    fabric_slowness,
    optimizer_overhead,
    optimizer_slowness,
    fixed_count,
  };
  static bool is_slowness(std::size_t parameter);
  // Includes every correction that an op of the Programs needs, except for ops whose time is given
  // by `profile`.
  ParameterList(const std::vector<const Program*>& programs, const HardwareProfile& profile);

  std::size_t count() const { return fixed_count + keys_.size(); }
  const std::vector<CorrectionKey>& corrections() const { return keys_; }
  // Returns a readable name of the parameter, for tables.
  std::string text(std::size_t parameter) const;
  // Returns its name in shared/hardware/hardware_json.h; for a slowness, the name of the
  // efficiency.
  std::string key(std::size_t parameter) const;
  // Returns the value of the parameter in `profile`.
  double of(const HardwareProfile& profile, std::size_t parameter) const;
  // Sets all parameters in `profile`; corrections with other keys stay unchanged.
  void apply(const std::vector<double>& value, HardwareProfile& profile) const;

 private:
  std::vector<CorrectionKey> keys_;
};

struct Features {
  std::vector<double> base;                 // by Compiled node, seconds
  std::vector<std::vector<FitTerm>> terms;  // by Compiled node; zero terms are omitted
};
// Returns the linear form of the time of every node of `compiled` around `profile`.
Features features(const Program& program, const Compiled& compiled, const Cluster& cluster,
                  const HardwareProfile& profile, const ParameterList& parameters);

}  // namespace polyphony::traces
