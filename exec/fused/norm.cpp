#include "exec/fused/norm.h"

#include "exec/cuda/norm_body.h"
#include "exec/fused/run.h"

namespace polyphony::exec::kernels {

using torch::Tensor;

RmsNormed rms_forward(const Tensor& x_any, const Tensor& weight_any, double epsilon) {
  const Tensor x = x_any.contiguous(), weight = weight_any.contiguous();
  const std::int64_t rows = x.size(0), width = x.size(1);
  RmsNormed out{at::empty_like(x), at::empty({rows, 1}, wide_options(x))};
  by_format(x.scalar_type(), [&]<class T>() {
    RmsForward<T> body{};
    body.x = read<T>(x);
    body.weight = read<T>(weight);
    body.y = write<T>(out.y);
    body.scale = write<Wide<T>>(out.scale);
    body.width = width;
    body.epsilon = epsilon;
    body.aligned = rows_aligned<T>(width) && all_aligned(x, weight, out.y);
    run_rows(body, rows_of<T>(rows, width, x.device()), x.device());
  });
  return out;
}

RmsGradients rms_backward(const Tensor& dy_any, const Tensor& x_any, const Tensor& weight_any,
                          const Tensor& scale, bool wants_dx, bool wants_dw) {
  const Tensor dy = dy_any.contiguous(), x = x_any.contiguous(), weight = weight_any.contiguous();
  const std::int64_t rows = x.size(0), width = x.size(1);
  RmsGradients out;
  if (wants_dx) out.dx = at::empty_like(x);
  by_format(x.scalar_type(), [&]<class T>() {
    const RowShape shape = rows_of<T>(rows, width, x.device());
    Tensor partial;
    if (wants_dw) partial = at::empty({shape.blocks, width}, wide_options(x));
    RmsBackward<T> body{};
    body.dy = read<T>(dy);
    body.x = read<T>(x);
    body.weight = read<T>(weight);
    body.scale = read<Wide<T>>(scale);
    if (wants_dx) body.dx = write<T>(out.dx);
    if (wants_dw) body.d_weight = write<Wide<T>>(partial);
    body.width = width;
    body.aligned =
        rows_aligned<T>(width) && all_aligned(dy, x, weight) && (!wants_dx || all_aligned(out.dx));
    run_rows(body, shape, x.device());
    if (wants_dw) out.dw = partial.sum(0);
  });
  return out;
}

LayerGradients layer_backward(const Tensor& dy_any, const Tensor& x_any, const Tensor& weight_any,
                              const Tensor& mean, const Tensor& scale, bool wants_dx,
                              bool wants_parameters) {
  const Tensor dy = dy_any.contiguous(), x = x_any.contiguous(), weight = weight_any.contiguous();
  const std::int64_t rows = x.size(0), width = x.size(1);
  LayerGradients out;
  if (wants_dx) out.dx = at::empty_like(x);
  by_format(x.scalar_type(), [&]<class T>() {
    const RowShape shape = rows_of<T>(rows, width, x.device());
    Tensor partial;
    if (wants_parameters) partial = at::empty({shape.blocks, 2, width}, wide_options(x));
    LayerBackward<T> body{};
    body.dy = read<T>(dy);
    body.x = read<T>(x);
    body.weight = read<T>(weight);
    body.mean = read<Wide<T>>(mean);
    body.scale = read<Wide<T>>(scale);
    if (wants_dx) body.dx = write<T>(out.dx);
    if (wants_parameters) body.d_parameters = write<Wide<T>>(partial);
    body.width = width;
    body.aligned =
        rows_aligned<T>(width) && all_aligned(dy, x, weight) && (!wants_dx || all_aligned(out.dx));
    run_rows(body, shape, x.device());
    if (wants_parameters) out.d_parameters = partial.sum(0);
  });
  return out;
}

}  // namespace polyphony::exec::kernels
