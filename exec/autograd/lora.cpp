#include "exec/autograd/lora.h"

#include <utility>

#include "exec/autograd/wide_gradient.h"

namespace polyphony::exec {

using torch::Tensor;

Tensor add_low_rank(const LocalParameter& weight, const Tensor& x, Tensor& y) {
  const Tensor h = at::mm(x, weight.lora_a->value.t()).mul_(weight.lora_scale);
  y.addmm_(h, weight.lora_b->value.t());
  return h;
}

void low_rank_backward(const Pass& pass, const LocalParameter& weight, Tensor x, Tensor h,
                       const Tensor& dy, Tensor& dx) {
  LocalParameter *const a = weight.lora_a, *const b = weight.lora_b;
  Tensor g = at::mm(dy, b->value).mul_(weight.lora_scale);
  if (dx.defined()) dx.addmm_(g, a->value);
  if (!a->grad.defined()) return;
  pass.queue->add([a, b, dy, x = std::move(x), h = std::move(h), g = std::move(g)] {
    add_product(a->grad, g, x);
    add_product(b->grad, dy, h);
  });
}

}  // namespace polyphony::exec
