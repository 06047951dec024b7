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

Tensor low_rank_gradient(const LocalParameter& weight, const Tensor& dy) {
  return at::mm(dy, weight.lora_b->value).mul_(weight.lora_scale);
}

void low_rank_backward(const Pass& pass, const LocalParameter& weight, Tensor x, Tensor h,
                       const Tensor& dy, Tensor& dx) {
  Tensor g = low_rank_gradient(weight, dy);
  if (dx.defined()) dx.addmm_(g, weight.lora_a->value);
  queue_low_rank(pass, weight, std::move(x), std::move(h), dy, std::move(g));
}

void queue_low_rank(const Pass& pass, const LocalParameter& weight, Tensor x, Tensor h,
                    const Tensor& dy, Tensor g) {
  LocalParameter *const a = weight.lora_a, *const b = weight.lora_b;
  if (!a->grad.defined()) return;
  pass.queue->add([a, b, dy, x = std::move(x), h = std::move(h), g = std::move(g)] {
    add_product(a->grad, g, x);
    add_product(b->grad, dy, h);
  });
}

}  // namespace polyphony::exec
