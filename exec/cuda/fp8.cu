#include "exec/cuda/fp8_body.h"

#include "exec/cuda/launch.cuh"

namespace polyphony::exec::kernels {

POLYPHONY_ROWS(RowLargest<Bf16>);
POLYPHONY_ROWS(RowLargest<float>);
POLYPHONY_ROWS(RowLargest<double>);
POLYPHONY_EACH(ColumnLargest<Bf16>);
POLYPHONY_EACH(ColumnLargest<float>);
POLYPHONY_EACH(ColumnLargest<double>);
POLYPHONY_EACH(Fp8Cast<Bf16, E4m3>);
POLYPHONY_EACH(Fp8Transpose<Bf16, E4m3>);
POLYPHONY_EACH(Fp8Cast<float, E4m3>);
POLYPHONY_EACH(Fp8Transpose<float, E4m3>);
POLYPHONY_EACH(Fp8Cast<double, E4m3>);
POLYPHONY_EACH(Fp8Transpose<double, E4m3>);
POLYPHONY_EACH(Fp8Cast<Bf16, E5m2>);
POLYPHONY_EACH(Fp8Transpose<Bf16, E5m2>);
POLYPHONY_EACH(Fp8Cast<float, E5m2>);
POLYPHONY_EACH(Fp8Transpose<float, E5m2>);
POLYPHONY_EACH(Fp8Cast<double, E5m2>);
POLYPHONY_EACH(Fp8Transpose<double, E5m2>);

}  // namespace polyphony::exec::kernels
