#include "exec/fused/combine.h"

#include "exec/cuda/combine_body.h"
#include "exec/fused/run.h"

namespace polyphony::exec::kernels {

using torch::Tensor;

Tensor combine(const Tensor& here_any, const Tensor& place, const Tensor& weights_any,
               std::int64_t per_token) {
  const Tensor here = here_any.contiguous();
  const Tensor weights = weights_any.defined() ? weights_any.contiguous() : weights_any;
  const std::int64_t tokens = here.size(0) / per_token, width = here.size(1);
  POLYPHONY_CHECK(tokens * per_token == place.numel() &&
                      (!weights.defined() || weights.numel() == place.numel()),
                  here.sizes() << ", " << place.sizes() << " for " << per_token << " each");
  Tensor y = at::empty({tokens, width}, here.options());
  by_format(here.scalar_type(), [&]<class T>() {
    const Combine<T> body{.here = read<T>(here),
                          .place = place.const_data_ptr<std::int64_t>(),
                          .weights = weights.defined() ? read<Wide<T>>(weights) : nullptr,
                          .y = write<T>(y),
                          .per_token = per_token,
                          .width = width,
                          .aligned = rows_aligned<T>(width) && all_aligned(here, y)};
    run_each(body, tokens * packs_of<T>(width), here.device());
  });
  return y;
}

CombineGradients combine_backward(const Tensor& dy_any, const Tensor& here_any, const Tensor& order,
                                  const Tensor& weights_any, std::int64_t per_token) {
  const Tensor dy = dy_any.contiguous(), here = here_any.contiguous(),
               weights = weights_any.contiguous();
  const std::int64_t rows = here.size(0), width = here.size(1);
  POLYPHONY_CHECK(
      dy.size(0) * per_token == rows && order.numel() == rows && weights.numel() == rows,
      dy.sizes() << " for " << here.sizes() << ", " << per_token << " each");
  const CombineGradients out{at::empty_like(here), at::empty({rows}, wide_options(here))};
  by_format(here.scalar_type(), [&]<class T>() {
    CombineBackward<T> body{};
    body.dy = read<T>(dy);
    body.here = read<T>(here);
    body.order = order.const_data_ptr<std::int64_t>();
    body.weights = read<Wide<T>>(weights);
    body.d_here = write<T>(out.here);
    body.d_weights = write<Wide<T>>(out.weights);
    body.per_token = per_token;
    body.width = width;
    body.aligned = rows_aligned<T>(width) && all_aligned(dy, here, out.here);
    run_rows(body, rows_of<T>(rows, width, here.device()), here.device());
  });
  return out;
}

}  // namespace polyphony::exec::kernels
