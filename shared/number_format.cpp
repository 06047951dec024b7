#include "shared/number_format.h"

namespace polyphony {

// As stored; nvfp4 (half a byte and its block scale) is held as one byte, never as zero.
Bytes size_of(NumberFormat format) {
  switch (format) {
    case NumberFormat::fp64:
      return Bytes(8);
    case NumberFormat::fp32:
    case NumberFormat::tf32:
      return Bytes(4);
    case NumberFormat::bf16:
    case NumberFormat::fp16:
      return Bytes(2);
    case NumberFormat::fp8:
    case NumberFormat::nvfp4:
      return Bytes(1);
  }
  return Bytes(0);
}

}  // namespace polyphony
