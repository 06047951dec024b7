// A contiguous tensor cut into one part per member of a group, in group order: what all-gather,
// reduce-scatter and all-to-all are given, checked. In bytes; on any device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "exec/transport/communicator.h"

namespace polyphony::exec {

class Parts {
 public:
  // InternalError unless `whole` is contiguous and has as many elements as `counts` say.
  Parts(const torch::Tensor& whole, const std::vector<std::int64_t>& counts, int members);

  std::size_t size() const { return begins_.size() - 1; }
  std::size_t begin(std::size_t member) const { return begins_[member]; }
  std::size_t bytes(std::size_t member) const { return begins_[member + 1] - begins_[member]; }
  std::size_t total() const { return begins_.back(); }
  std::size_t longest() const;

 private:
  std::vector<std::size_t> begins_;  // one more than members
};

// InternalError when `part` is not the member's part of `whole` in type and size, or shares memory
// with `whole` at another place.
void check_part(const torch::Tensor& part, const torch::Tensor& whole, const Parts& parts,
                std::size_t member);
// InternalError when the two differ in type or share memory.
void check_apart(const torch::Tensor& one, const torch::Tensor& other);

}  // namespace polyphony::exec
