// How many rows each of a rank's experts has. If they are counted on a device, the device can use
// the counts at once. The host waits when it asks for them, unless the device has already finished
// counting.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "exec/autograd/inner_groups.h"
#include "exec/on_device.h"

namespace polyphony::exec {

class ExpertRows {
 public:
  // Counts that the host knows; tensors are made on `device`.
  ExpertRows(std::vector<std::int64_t> counts, torch::Device device)
      : device_(device), counts_(std::move(counts)) {}
  // Counts made on a device: [E] int64. `group` must outlive this object; its transport reports
  // lost peers while the host waits.
  ExpertRows(const torch::Tensor& counted, const InnerGroup& group);

  const std::vector<std::int64_t>& counts() const;
  // Cumulative row counts, each expert's own included: [E] int32, on the device.
  const torch::Tensor& ends() const;

 private:
  torch::Device device_;
  const InnerGroup* group_ = nullptr;
  mutable std::optional<OnTheWay> coming_;  // the counts, until the host has asked for them
  mutable std::vector<std::int64_t> counts_;
  mutable torch::Tensor ends_;  // made on first use
};

}  // namespace polyphony::exec
