#include "exec/cuda/head_norm_body.h"

#include "exec/cuda/launch.cuh"

namespace polyphony::exec::kernels {

POLYPHONY_ROWS(HeadNormForward<Bf16>);
POLYPHONY_ROWS(HeadNormForward<float>);
POLYPHONY_ROWS(HeadNormForward<double>);
POLYPHONY_ROWS(HeadNormBackward<Bf16>);
POLYPHONY_ROWS(HeadNormBackward<float>);
POLYPHONY_ROWS(HeadNormBackward<double>);

}  // namespace polyphony::exec::kernels
