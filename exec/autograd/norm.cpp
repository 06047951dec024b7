// LayerNorm and RMSNorm (exec/autograd/linear.h). Their statistics are fp32 or wider, whatever the
// format of x. Their weight gradients are summed at once, and only these vectors are queued,
// because queuing the sum would keep x and dy in memory.
#include <array>

#include "exec/autograd/linear.h"
#include "exec/autograd/saved_call.h"
#include "exec/autograd/wide_gradient.h"
#include "exec/fused/forms.h"
#include "exec/fused/norm.h"

namespace polyphony::exec {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

namespace {

struct NormCall : torch::CustomClassHolder {
  Pass pass;
  LocalParameter* weight;
  LocalParameter* bias;   // null: RMSNorm
  Tensor x, mean, scale;  // [rows, H], [rows, 1], [rows, 1]: 1 ÷ deviation
  NormCall(const Pass& pass_, LocalParameter* weight_, LocalParameter* bias_)
      : pass(pass_), weight(weight_), bias(bias_) {}
};

// On CPUs ATen's LayerNorm returns its statistics in the weights' format, and accepts weights of
// another format than x; on GPUs the statistics are fp32, and the formats must be equal.
Tensor norm_parameter(const LocalParameter& parameter) {
  return parameter.value.is_cpu() ? widened(parameter.value) : parameter.value;
}

bool is_fused(const Tensor& x, const LocalParameter& weight) {
  return kernels::wanted(x) && weight.value.scalar_type() == x.scalar_type();
}

void queue_sums(const NormCall& call, const Tensor& dw, const Tensor& db) {
  call.pass.queue->add([weight = call.weight, bias = call.bias, dw, db] {
    weight->grad.add_(dw);
    bias->grad.add_(db);
  });
}

// dx = s (g − Σg/H − z Σ(g∘z)/H), g = dy∘w, z = (x − mean)·s; dw = Σ dy∘z, db = Σ dy
class LayerNormFunction : public torch::autograd::Function<LayerNormFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& /*anchor*/,
                        const c10::intrusive_ptr<NormCall>& call) {
    save_call(context, call);
    auto [y, mean, scale] =
        at::native_layer_norm(x, {x.size(1)}, norm_parameter(*call->weight),
                              norm_parameter(*call->bias), call->pass.norm_epsilon);
    call->x = x.detach();
    call->mean = mean;
    call->scale = scale;
    return y;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto call = saved_call<NormCall>(context);
    const Tensor& dy = gradients[0];
    if (is_fused(dy, *call->weight)) {
      const auto fused =
          kernels::layer_backward(dy, call->x, call->weight->value, call->mean, call->scale,
                                  context->needs_input_grad(0), call->weight->grad.defined());
      if (fused.d_parameters.defined())
        queue_sums(*call, fused.d_parameters[0], fused.d_parameters[1]);
      return {fused.dx, Tensor(), Tensor()};
    }
    Tensor dx;
    if (context->needs_input_grad(0)) {
      dx = std::get<0>(at::native_layer_norm_backward(
          dy, call->x, {call->x.size(1)}, call->mean, call->scale, norm_parameter(*call->weight),
          norm_parameter(*call->bias), {true, false, false}));
    }
    if (call->weight->grad.defined()) {
      const auto [none, dw, db] = at::native_layer_norm_backward(
          widened(dy), widened(call->x), {call->x.size(1)}, call->mean, call->scale,
          widened(call->weight->value), widened(call->bias->value), {false, true, true});
      queue_sums(*call, dw, db);
    }
    return {dx, Tensor(), Tensor()};
  }
};

void queue_sum(const NormCall& call, const Tensor& dw) {
  call.pass.queue->add([weight = call.weight, dw] { weight->grad.add_(dw); });
}

// The product of bf16 and fp32 is fp32, so only the output is rounded.
class RmsNormFunction : public torch::autograd::Function<RmsNormFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& /*anchor*/,
                        const c10::intrusive_ptr<NormCall>& call) {
    save_call(context, call);
    call->x = x.detach();
    if (is_fused(x, *call->weight)) {
      auto [y, scale] = kernels::rms_forward(x, call->weight->value, call->pass.norm_epsilon);
      call->scale = scale;
      return y;
    }
    call->scale =
        at::linalg_vector_norm(x, 2, {-1}, /*keepdim=*/true, gradient_type(x.scalar_type()));
    call->scale.square_().div_(x.size(1)).add_(call->pass.norm_epsilon).rsqrt_();
    return at::mul(x, call->scale).mul_(call->weight->value).to(x.scalar_type());
  }
  // dx = s (dy∘w) − x s³/H Σ(dy∘w∘x)
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto call = saved_call<NormCall>(context);
    const Tensor& dy = gradients[0];
    Tensor dx;
    if (is_fused(dy, *call->weight)) {
      const auto fused =
          kernels::rms_backward(dy, call->x, call->weight->value, call->scale,
                                context->needs_input_grad(0), call->weight->grad.defined());
      if (fused.dw.defined()) queue_sum(*call, fused.dw);
      return {fused.dx, Tensor(), Tensor()};
    }
    if (context->needs_input_grad(0)) {
      dx = at::mul(widened(dy), call->weight->value);
      const Tensor along = at::mul(dx, call->x).sum(1, /*keepdim=*/true);
      dx.mul_(call->scale)
          .addcmul_(call->x, along.mul_(call->scale.pow(3)),
                    -1.0 / static_cast<double>(dy.size(1)));
      dx = dx.to(dy.scalar_type());
    }
    if (call->weight->grad.defined()) {
      queue_sum(*call, at::mul(widened(dy), call->x).mul_(call->scale).sum(0));
    }
    return {dx, Tensor(), Tensor()};
  }
};

}  // namespace

Tensor layer_norm(const Pass& pass, const Tensor& x, LocalParameter* weight, LocalParameter* bias) {
  return LayerNormFunction::apply(x, pass.anchor_of(*weight),
                                  c10::make_intrusive<NormCall>(pass, weight, bias));
}
Tensor rms_norm(const Pass& pass, const Tensor& x, LocalParameter* weight) {
  return RmsNormFunction::apply(x, pass.anchor_of(*weight),
                                c10::make_intrusive<NormCall>(pass, weight, nullptr));
}

}  // namespace polyphony::exec
