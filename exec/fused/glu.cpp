#include "exec/fused/glu.h"

#include "exec/cuda/glu_body.h"
#include "exec/fused/run.h"

namespace polyphony::exec::kernels {

using torch::Tensor;

namespace {

Gate gate_of(Activation activation) {
  switch (activation) {
    case Activation::silu:
      return Gate::silu;
    case Activation::gelu:
      return Gate::gelu;
    case Activation::clamped:
      return Gate::clamped;
  }
  POLYPHONY_CHECK(false, "no gate of " << polyphony::name(activation));
}

}  // namespace

Tensor glu_forward(const Tensor& gate_up, Activation activation) {
  const Tensor pairs = gate_up.contiguous();
  Tensor y = at::empty({pairs.size(0), pairs.size(1) / 2}, pairs.options());
  by_format(pairs.scalar_type(), [&]<class T>() {
    run_each(GluForward<T>{read<T>(pairs), write<T>(y), y.numel(), gate_of(activation),
                           all_aligned(pairs, y)},
             packs_of<T>(y.numel()), y.device());
  });
  return y;
}

Tensor glu_backward(const Tensor& dy, const Tensor& gate_up, Activation activation) {
  const Tensor pairs = gate_up.contiguous(), d = dy.contiguous();
  POLYPHONY_CHECK(d.scalar_type() == pairs.scalar_type() && 2 * d.numel() == pairs.numel(),
                  d.sizes() << " for " << pairs.sizes());
  Tensor d_pairs = at::empty_like(pairs);
  by_format(pairs.scalar_type(), [&]<class T>() {
    run_each(GluBackward<T>{read<T>(d), read<T>(pairs), write<T>(d_pairs), d.numel(),
                            gate_of(activation), all_aligned(d, pairs, d_pairs)},
             packs_of<T>(d.numel()), d.device());
  });
  return d_pairs;
}

}  // namespace polyphony::exec::kernels
