#include "exec/autograd/layer_scale.h"

#include "exec/autograd/saved_call.h"
#include "exec/autograd/wide_gradient.h"

namespace polyphony::exec {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

namespace {

struct LayerScaleCall : torch::CustomClassHolder {
  std::shared_ptr<WeightQueue> queue;
  LocalParameter* weight;
  Tensor y;  // undefined if the scale is frozen
  LayerScaleCall(const Pass& pass, LocalParameter* weight_) : queue(pass.queue), weight(weight_) {}
};

class LayerScaleFunction : public torch::autograd::Function<LayerScaleFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& y, const Tensor& /*anchor*/,
                        const c10::intrusive_ptr<LayerScaleCall>& call) {
    save_call(context, call);
    if (call->weight->grad.defined()) call->y = y.detach();
    return at::mul(y, call->weight->value);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto call = saved_call<LayerScaleCall>(context);
    const Tensor& dy = gradients[0];
    if (call->y.defined())
      call->queue->add([weight = call->weight, dw = at::mul(widened(dy), call->y).sum(0)] {
        weight->grad.add_(dw);
      });
    return {context->needs_input_grad(0) ? at::mul(dy, call->weight->value) : Tensor(), Tensor(),
            Tensor()};
  }
};

}  // namespace

Tensor layer_scale(const Pass& pass, const Tensor& y, LocalParameter* weight) {
  return LayerScaleFunction::apply(y, pass.anchor_of(*weight),
                                   c10::make_intrusive<LayerScaleCall>(pass, weight));
}

}  // namespace polyphony::exec
