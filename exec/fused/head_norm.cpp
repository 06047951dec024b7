#include "exec/fused/head_norm.h"

#include "exec/cuda/head_norm_body.h"
#include "exec/fused/run.h"

namespace polyphony::exec::kernels {

using torch::Tensor;

namespace {

template <class T>
HeadRow<T> heads_of(const Tensor& qkv, const Tensor& query, const Tensor& key) {
  return {qkv.size(2) - 2, qkv.size(3), read<T>(query), read<T>(key)};
}

std::int64_t heads_in(const Tensor& qkv) { return qkv.size(0) * qkv.size(1) * qkv.size(2); }

}  // namespace

HeadsNormed head_norm_forward(const Tensor& qkv_any, const Tensor& query_any, const Tensor& key_any,
                              double epsilon) {
  const Tensor qkv = qkv_any.contiguous(), query = query_any.contiguous(),
               key = key_any.contiguous();
  const HeadsNormed out{
      at::empty_like(qkv),
      at::empty({qkv.size(0), qkv.size(1), qkv.size(2) - 1, 1}, wide_options(qkv))};
  by_format(qkv.scalar_type(), [&]<class T>() {
    HeadNormForward<T> body{};
    body.heads = heads_of<T>(qkv, query, key);
    body.x = read<T>(qkv);
    body.y = write<T>(out.y);
    body.scale = write<Wide<T>>(out.scale);
    body.epsilon = epsilon;
    body.aligned = rows_aligned<T>(qkv.size(3)) && all_aligned(qkv, query, key, out.y);
    run_rows(body, rows_of<T>(heads_in(qkv), qkv.size(3), qkv.device()), qkv.device());
  });
  return out;
}

HeadNormGradients head_norm_backward(const Tensor& dy_any, const Tensor& qkv_any,
                                     const Tensor& query_any, const Tensor& key_any,
                                     const Tensor& scale, bool wants_dx, bool wants_dw) {
  const Tensor dy = dy_any.contiguous(), qkv = qkv_any.contiguous(), query = query_any.contiguous(),
               key = key_any.contiguous();
  const std::int64_t width = qkv.size(3);
  HeadNormGradients out;
  if (wants_dx) out.dx = at::empty_like(qkv);
  by_format(qkv.scalar_type(), [&]<class T>() {
    const RowShape shape = rows_of<T>(heads_in(qkv), width, qkv.device());
    Tensor partial;
    if (wants_dw) partial = at::empty({shape.blocks, 2, width}, wide_options(qkv));
    HeadNormBackward<T> body{};
    body.heads = heads_of<T>(qkv, query, key);
    body.dy = read<T>(dy);
    body.x = read<T>(qkv);
    body.scale = read<Wide<T>>(scale);
    if (wants_dx) body.dx = write<T>(out.dx);
    if (wants_dw) body.d_weights = write<Wide<T>>(partial);
    body.aligned = rows_aligned<T>(width) && all_aligned(dy, qkv, query, key) &&
                   (!wants_dx || all_aligned(out.dx));
    run_rows(body, shape, qkv.device());
    if (wants_dw) out.dw = partial.sum(0);
  });
  return out;
}

}  // namespace polyphony::exec::kernels
