#include "exec/cuda/glu_body.h"

#include "exec/cuda/launch.cuh"

namespace polyphony::exec::kernels {

POLYPHONY_EACH(GluForward<Bf16>);
POLYPHONY_EACH(GluForward<float>);
POLYPHONY_EACH(GluForward<double>);
POLYPHONY_EACH(GluBackward<Bf16>);
POLYPHONY_EACH(GluBackward<float>);
POLYPHONY_EACH(GluBackward<double>);

}  // namespace polyphony::exec::kernels
