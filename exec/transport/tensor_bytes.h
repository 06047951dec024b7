// A tensor as the bytes and elements that transports move.
#pragma once

#include "exec/transport/communicator.h"
#include "exec/transport/reduce.h"

namespace polyphony::exec {

// Error when the tensor is not a contiguous CPU tensor.
std::byte* bytes_of(const torch::Tensor& tensor);
// Error when transports cannot add up that type.
Element element_of(const torch::Tensor& tensor);
// Nothing when there is nothing to copy, or it is there already.
void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes);
void check_tag(const Transfer& transfer, int world_size);

}  // namespace polyphony::exec
