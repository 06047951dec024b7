#include "exec/experts/shared_gate.h"

#include <utility>

#include "exec/autograd/saved_call.h"
#include "exec/autograd/wide_gradient.h"

namespace polyphony::exec {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

namespace {

struct SharedGateCall : torch::CustomClassHolder {
  std::shared_ptr<WeightQueue> queue;
  LocalParameter* weight;
  Tensor x;     // [rows, H]; undefined if the weight is frozen
  Tensor y;     // [rows, H]
  Tensor open;  // s [rows, 1]
  SharedGateCall(const Pass& pass, LocalParameter* weight_) : queue(pass.queue), weight(weight_) {}
};

class SharedGateFunction : public torch::autograd::Function<SharedGateFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& y,
                        const Tensor& /*anchor*/, const c10::intrusive_ptr<SharedGateCall>& call) {
    save_call(context, call);
    if (call->weight->grad.defined()) call->x = x.detach();
    call->y = y.detach();
    call->open = at::mm(x, call->weight->value.t()).sigmoid_();
    return at::mul(y, call->open);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto call = saved_call<SharedGateCall>(context);
    const Tensor& d_out = gradients[0];
    const Tensor d_open = at::mul(d_out, std::exchange(call->y, Tensor())).sum(1, /*keepdim=*/true);
    const Tensor d_logit = at::sigmoid_backward(d_open, call->open);
    Tensor dx, dy;
    if (context->needs_input_grad(0)) dx = at::mm(d_logit, call->weight->value);
    if (context->needs_input_grad(1)) dy = at::mul(d_out, call->open);
    if (call->x.defined())
      call->queue->add([weight = call->weight, d_logit, x = std::move(call->x)] {
        add_product(weight->grad, d_logit, x);
      });
    return {dx, dy, Tensor(), Tensor()};
  }
};

}  // namespace

Tensor gate_shared(const Pass& pass, const Tensor& x, const Tensor& y, LocalParameter* weight) {
  return SharedGateFunction::apply(x, y, pass.anchor_of(*weight),
                                   c10::make_intrusive<SharedGateCall>(pass, weight));
}

}  // namespace polyphony::exec
