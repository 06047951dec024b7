#include "exec/cuda/combine_body.h"
#include "exec/cuda/launch.cuh"

namespace polyphony::exec::kernels {

POLYPHONY_EACH(Combine<Bf16>);
POLYPHONY_EACH(Combine<float>);
POLYPHONY_EACH(Combine<double>);
POLYPHONY_ROWS(CombineBackward<Bf16>);
POLYPHONY_ROWS(CombineBackward<float>);
POLYPHONY_ROWS(CombineBackward<double>);

}  // namespace polyphony::exec::kernels
