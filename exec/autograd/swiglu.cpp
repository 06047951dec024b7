#include "exec/autograd/swiglu.h"

namespace polyphony::exec {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

namespace {

class SwiGlu : public torch::autograd::Function<SwiGlu> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& gate_up) {
    const Tensor planes = swiglu_planes(gate_up);
    context->saved_data["planes"] = planes;
    return swiglu_forward(planes);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {swiglu_backward(gradients[0], context->saved_data["planes"].toTensor())};
  }
};

}  // namespace

Tensor swiglu(const Tensor& gate_up) { return SwiGlu::apply(gate_up); }

Tensor swiglu_planes(const Tensor& gate_up) {
  return gate_up.view({gate_up.size(0), gate_up.size(1) / 2, 2}).permute({2, 0, 1}).contiguous();
}

Tensor swiglu_forward(const Tensor& planes) { return at::silu(planes[0]).mul_(planes[1]); }

Tensor swiglu_backward(const Tensor& dy, const Tensor& planes) {
  const Tensor gate = at::silu_backward(at::mul(dy, planes[1]), planes[0]);
  const Tensor up = at::silu(planes[0]).mul_(dy);
  // Not at::stack: it copies element by element, five times as long (1.0 against 0.2 ms for 256
  // rows of 2 x 1024).
  Tensor pairs = at::empty({dy.size(0), dy.size(1), 2}, dy.options());
  pairs.select(2, 0).copy_(gate);
  pairs.select(2, 1).copy_(up);
  return pairs.view({dy.size(0), 2 * dy.size(1)});
}

}  // namespace polyphony::exec
