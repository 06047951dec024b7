// A contiguous tensor cut into one part per member of a group, in group order, and checks of the
// arguments of all-gather, reduce-scatter and all-to-all. Offsets are in bytes; the tensor may be
// on any device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "exec/transport/communicator.h"

namespace polyphony::exec {

class Parts {
 public:
  // Throws InternalError unless `whole` is contiguous and has as many elements as the sum of
  // `counts`.
  Parts(const torch::Tensor& whole, const std::vector<std::int64_t>& counts, int members);

  std::size_t size() const { return begins_.size() - 1; }
  std::size_t begin(std::size_t member) const { return begins_[member]; }
  std::size_t bytes(std::size_t member) const { return begins_[member + 1] - begins_[member]; }
  std::size_t total() const { return begins_.back(); }
  std::size_t longest() const;

 private:
  std::vector<std::size_t> begins_;  // one more than members
};

// Throws InternalError if `part` differs from the member's part of `whole` in type or size, or
// overlaps `whole` at another place than that part.
void check_part(const torch::Tensor& part, const torch::Tensor& whole, const Parts& parts,
                std::size_t member);
// Throws InternalError if the two tensors differ in type or share memory.
void check_apart(const torch::Tensor& one, const torch::Tensor& other);

}  // namespace polyphony::exec
