#include "exec/transport/tensor_bytes.h"

#include <cstring>

#include "shared/error.h"

namespace polyphony::exec {

std::byte* bytes_of(const torch::Tensor& tensor) {
  POLYPHONY_CHECK(tensor.defined() && tensor.is_contiguous() && tensor.device().is_cpu(),
                  "a transport needs a contiguous CPU tensor");
  return static_cast<std::byte*>(tensor.data_ptr());
}

Element element_of(const torch::Tensor& tensor) {
  const torch::ScalarType type = tensor.scalar_type();
  if (type == torch::kFloat32) return Element::float32;
  if (type == torch::kFloat64) return Element::float64;
  if (type == torch::kBFloat16) return Element::bfloat16;
  POLYPHONY_CHECK(type == torch::kInt64,
                  "collectives do not support the type " << torch::toString(type));
  return Element::int64;
}

void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes > 0 && to != from) std::memcpy(to, from, bytes);
}

void check_tag(const Transfer& transfer, int world_size) {
  POLYPHONY_CHECK(transfer.tag < kTagEnd,
                  "a tag must be below " << kTagEnd << " (got " << transfer.tag << ")");
  POLYPHONY_CHECK(transfer.peer.value < static_cast<std::uint32_t>(world_size),
                  "message to or from rank " << transfer.peer.value << " of " << world_size);
}

}  // namespace polyphony::exec
