// Number formats of tensors in memory and in GEMMs.
#pragma once

#include <cstdint>

#include "shared/enum_names.h"
#include "shared/units.h"

namespace polyphony {

enum class NumberFormat : std::uint8_t { fp64, fp32, tf32, bf16, fp16, fp8, nvfp4 };
constexpr auto names(NumberFormat) {
  return names_of<NumberFormat>("fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "nvfp4");
}
Bytes size_of(NumberFormat format);  // bytes per element

}  // namespace polyphony
