// A tensor as the bytes and elements that transports move.
#pragma once

#include "exec/communicator.h"
#include "exec/reduce.h"

namespace polyphony::exec {

// Error when the tensor is not a contiguous CPU tensor.
std::byte* bytes_of(const torch::Tensor& tensor);
// Error when transports cannot add up that type.
Element element_of(const torch::Tensor& tensor);
void check_tag(const Transfer& transfer, int world_size);

}  // namespace polyphony::exec
