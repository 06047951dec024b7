#include "exec/cuda/launch.cuh"
#include "exec/cuda/norm_body.h"

namespace polyphony::exec::kernels {

POLYPHONY_ROWS(RmsForward<Bf16>);
POLYPHONY_ROWS(RmsForward<float>);
POLYPHONY_ROWS(RmsForward<double>);
POLYPHONY_ROWS(RmsBackward<Bf16>);
POLYPHONY_ROWS(RmsBackward<float>);
POLYPHONY_ROWS(RmsBackward<double>);
POLYPHONY_ROWS(LayerBackward<Bf16>);
POLYPHONY_ROWS(LayerBackward<float>);
POLYPHONY_ROWS(LayerBackward<double>);

}  // namespace polyphony::exec::kernels
