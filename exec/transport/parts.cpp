#include "exec/transport/parts.h"

#include <algorithm>

#include "shared/error.h"

namespace polyphony::exec {

namespace {

const std::byte* start(const torch::Tensor& tensor) {
  return static_cast<const std::byte*>(tensor.const_data_ptr());
}

bool overlap(const torch::Tensor& one, const torch::Tensor& other) {
  return one.nbytes() > 0 && other.nbytes() > 0 && start(one) < start(other) + other.nbytes() &&
         start(other) < start(one) + one.nbytes();
}

void check_pair(const torch::Tensor& one, const torch::Tensor& other) {
  POLYPHONY_CHECK(one.defined() && one.is_contiguous(), "a collective needs contiguous tensors");
  POLYPHONY_CHECK(one.scalar_type() == other.scalar_type() && one.device() == other.device(),
                  "the tensors of a collective differ: "
                      << torch::toString(one.scalar_type()) << " on " << one.device() << " and "
                      << torch::toString(other.scalar_type()) << " on " << other.device());
}

}  // namespace

Parts::Parts(const torch::Tensor& whole, const std::vector<std::int64_t>& counts, int members)
    : begins_{0} {
  POLYPHONY_CHECK(whole.defined() && whole.is_contiguous(),
                  "a collective needs contiguous tensors");
  POLYPHONY_CHECK(counts.size() == static_cast<std::size_t>(members),
                  counts.size() << " counts for " << members << " members");
  begins_.reserve(counts.size() + 1);
  for (const std::int64_t count : counts) {
    POLYPHONY_CHECK(count >= 0, "a part must have at least 0 elements (got " << count << ")");
    begins_.push_back(begins_.back() + static_cast<std::size_t>(count) * whole.element_size());
  }
  POLYPHONY_CHECK(total() == whole.nbytes(),
                  "parts of " << total() << " bytes in a tensor of " << whole.nbytes() << " bytes");
}

std::size_t Parts::longest() const {
  std::size_t most = 0;
  for (std::size_t member = 0; member < size(); ++member) most = std::max(most, bytes(member));
  return most;
}

void check_part(const torch::Tensor& part, const torch::Tensor& whole, const Parts& parts,
                std::size_t member) {
  check_pair(part, whole);
  POLYPHONY_CHECK(part.nbytes() == parts.bytes(member),
                  "member " << member << " passes " << part.nbytes() << " bytes, but its part has "
                            << parts.bytes(member));
  POLYPHONY_CHECK(!overlap(part, whole) || start(part) == start(whole) + parts.begin(member),
                  "the part of member " << member << " overlaps the whole at another place");
}

void check_apart(const torch::Tensor& one, const torch::Tensor& other) {
  check_pair(one, other);
  POLYPHONY_CHECK(!overlap(one, other), "the two tensors of an all-to-all must not share memory");
}

}  // namespace polyphony::exec
