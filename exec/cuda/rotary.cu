#include "exec/cuda/rotary_body.h"

#include "exec/cuda/launch.cuh"

namespace polyphony::exec::kernels {

POLYPHONY_EACH(SplitTurned<Bf16>);
POLYPHONY_EACH(SplitTurned<float>);
POLYPHONY_EACH(SplitTurned<double>);
POLYPHONY_EACH(JoinTurned<Bf16>);
POLYPHONY_EACH(JoinTurned<float>);
POLYPHONY_EACH(JoinTurned<double>);

}  // namespace polyphony::exec::kernels
