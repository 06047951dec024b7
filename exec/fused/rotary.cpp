#include "exec/fused/rotary.h"

#include "exec/cuda/rotary_body.h"
#include "exec/fused/run.h"

namespace polyphony::exec::kernels {

using torch::Tensor;

namespace {

template <class T>
Turn<T> turn_of(const Tensor& cosine, const Tensor& sine, std::int64_t width, bool aligned) {
  return {.cosine = read<Wide<T>>(cosine),
          .sine = read<Wide<T>>(sine),
          .turned = static_cast<int>(cosine.size(1)),
          .width = static_cast<int>(width),
          .aligned = rows_aligned<T>(width) && aligned && all_aligned(cosine, sine)};
}

PackedHeadSizes sizes_of(const Tensor& qkv) {
  return {static_cast<int>(qkv.size(1)), static_cast<int>(qkv.size(2) - 2),
          static_cast<int>(qkv.size(3))};
}

void check_tables(const Tensor& cosine, const Tensor& sine, std::int64_t rows, std::int64_t width) {
  POLYPHONY_CHECK(cosine.dim() == 2 && cosine.size(0) == rows && cosine.size(1) <= width &&
                      cosine.size(1) % 2 == 0 && cosine.sizes() == sine.sizes() &&
                      cosine.is_contiguous() && sine.is_contiguous(),
                  "angles " << cosine.sizes() << " for " << rows << " rows of " << width);
}

}  // namespace

TurnedHeads split_turned(const Tensor& qkv_any, const Tensor& cosine, const Tensor& sine) {
  const Tensor qkv = qkv_any.contiguous();
  const PackedHeadSizes sizes = sizes_of(qkv);
  const std::int64_t rows = qkv.size(0);
  check_tables(cosine, sine, rows, sizes.width);
  const TurnedHeads out{at::empty({rows, sizes.kv_heads, sizes.group, sizes.width}, qkv.options()),
                        at::empty({rows, sizes.kv_heads, 1, sizes.width}, qkv.options())};
  by_format(qkv.scalar_type(), [&]<class T>() {
    const bool aligned = all_aligned(qkv, out.queries, out.keys);
    run_each(SplitTurned<T>{read<T>(qkv), write<T>(out.queries), write<T>(out.keys),
                            turn_of<T>(cosine, sine, sizes.width, aligned), sizes},
             rows * sizes.kv_heads * (sizes.group + 1) * packs_of<T>(sizes.width), qkv.device());
  });
  return out;
}

Tensor join_turned(const Tensor& dq_any, const Tensor& dk_any, const Tensor& dv_any,
                   const Tensor& cosine, const Tensor& sine) {
  const Tensor dq = dq_any.contiguous(), dk = dk_any.contiguous(), dv = dv_any.contiguous();
  const std::int64_t rows = dq.size(0), heads = dq.size(1), width = dq.size(3);
  check_tables(cosine, sine, rows, width);
  const Tensor out = at::empty({rows, heads, dq.size(2) + 2, width}, dq.options());
  by_format(dq.scalar_type(), [&]<class T>() {
    const bool aligned = all_aligned(dq, dk, dv, out);
    run_each(JoinTurned<T>{read<T>(dq), read<T>(dk), read<T>(dv), write<T>(out),
                           turn_of<T>(cosine, sine, width, aligned), sizes_of(out)},
             out.numel() == 0 ? 0 : out.numel() / width * packs_of<T>(width), out.device());
  });
  return out;
}

}  // namespace polyphony::exec::kernels
