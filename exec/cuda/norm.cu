#include "exec/cuda/launch.cuh"
#include "exec/cuda/norm_body.h"

namespace polyphony::exec::kernels {

POLYPHONY_ROWS(RmsForward<Bf16>);
POLYPHONY_ROWS(RmsForward<float>);
POLYPHONY_ROWS(RmsForward<double>);
POLYPHONY_ROWS(RmsBackward<Bf16>);
POLYPHONY_ROWS(RmsBackward<float>);
POLYPHONY_ROWS(RmsBackward<double>);

}  // namespace polyphony::exec::kernels
