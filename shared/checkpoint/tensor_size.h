// Sizes of the tensors of safetensors files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shared/checkpoint/safetensors_header.h"
#include "shared/error.h"

namespace polyphony {

// Returns the elements of a tensor of this shape, which must fit into 63 bits.
inline std::int64_t element_count(const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return count;
}

// Returns the bytes of an element. `format` must be one of kSafetensorsFormats.
inline std::int64_t element_bytes(const std::string& format) {
  for (const SafetensorsFormat& known : kSafetensorsFormats)
    if (format == known.name) return known.bytes;
  POLYPHONY_CHECK(false, format << " is not a number format");
}

}  // namespace polyphony
