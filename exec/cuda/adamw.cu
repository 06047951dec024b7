#include "exec/cuda/adamw_body.h"

#include "exec/cuda/launch.cuh"

namespace polyphony::exec::kernels {

POLYPHONY_EACH(AdamWTerms);
POLYPHONY_EACH(AdamW<Bf16>);
POLYPHONY_EACH(AdamW<float>);
POLYPHONY_EACH(AdamW<double>);

}  // namespace polyphony::exec::kernels
