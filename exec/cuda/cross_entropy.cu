#include "exec/cuda/cross_entropy_body.h"
#include "exec/cuda/launch.cuh"

namespace polyphony::exec::kernels {

POLYPHONY_ROWS(LogitRows<Bf16>);
POLYPHONY_ROWS(LogitRows<float>);
POLYPHONY_ROWS(LogitRows<double>);
POLYPHONY_EACH(LogitGradient<Bf16>);
POLYPHONY_EACH(LogitGradient<float>);
POLYPHONY_EACH(LogitGradient<double>);

}  // namespace polyphony::exec::kernels
