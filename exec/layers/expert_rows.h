// How many rows each of a rank's experts has. Counted on a device, the device knows at once, and the host when it asks:
// then it waits, unless the device has passed the counting long since.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "exec/autograd/inner_groups.h"
#include "exec/on_device.h"

namespace polyphony::exec {

class ExpertRows {
 public:
  // Known to the host; tensors are on `device`.
  ExpertRows(std::vector<std::int64_t> counts, torch::Device device)
      : device_(device), counts_(std::move(counts)) {}
  // Counted on a device: [E] of int64. The group's transport hears of lost peers, and must outlive this.
  ExpertRows(const torch::Tensor& counted, const InnerGroup& group);

  const std::vector<std::int64_t>& counts() const;
  // [E] of int32, on the device: the rows of experts up to each, its own too.
  const torch::Tensor& ends() const;

 private:
  torch::Device device_;
  const InnerGroup* group_ = nullptr;
  mutable std::optional<OnTheWay> coming_;  // until the host has asked
  mutable std::vector<std::int64_t> counts_;
  mutable torch::Tensor ends_;  // made when asked for
};

}  // namespace polyphony::exec
