// Access to tensors as the bytes and elements that transports move, and checks of both.
#pragma once

#include "exec/transport/communicator.h"
#include "exec/transport/reduce.h"

namespace polyphony::exec {

// Returns the tensor's memory. Throws InternalError unless it is a contiguous CPU tensor.
std::byte* bytes_of(const torch::Tensor& tensor);
// Returns the element type. Throws InternalError if transports have no reduction for that type.
Element element_of(const torch::Tensor& tensor);
// Copies `bytes` bytes. Does nothing if there are none, or if `to` equals `from`.
void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes);
// Throws InternalError if the tag is not below kTagEnd, or the peer is not a rank of the world.
void check_tag(const Transfer& transfer, int world_size);

}  // namespace polyphony::exec
