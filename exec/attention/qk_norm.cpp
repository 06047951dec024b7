#include "exec/attention/qk_norm.h"

#include "exec/autograd/saved_call.h"
#include "exec/autograd/wide_gradient.h"
#include "exec/fused/forms.h"
#include "exec/fused/head_norm.h"

namespace polyphony::exec {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

namespace {

struct HeadNormCall : torch::CustomClassHolder {
  Pass pass;
  HeadShape heads;
  LocalParameter* query;
  LocalParameter* key;
  Tensor x, scale;  // [T, K·(g+2)·D], [T, K, g+1, 1]: 1 ÷ root of the mean square
  HeadNormCall(const Pass& pass_, const HeadShape& heads_, LocalParameter* query_,
               LocalParameter* key_)
      : pass(pass_), heads(heads_), query(query_), key(key_) {}

  // Views rows with the layout of qkv as [T, K, g+2, D]; and the part of it that is normalized.
  Tensor split(const Tensor& rows) const {
    return rows.view({rows.size(0), heads.kv_heads, heads.group + 2, heads.width});
  }
  Tensor normalized(const Tensor& rows) const { return split(rows).narrow(2, 0, heads.group + 1); }
  bool is_fused() const {
    const auto format = x.scalar_type();
    return kernels::wanted(x) && query->value.scalar_type() == format &&
           key->value.scalar_type() == format;
  }
  Tensor weights() const {  // [g+1, D]
    return at::cat({query->value.expand({heads.group, heads.width}), key->value.unsqueeze(0)});
  }
};

void queue_sums(const HeadNormCall& call, const Tensor& sums) {
  call.pass.queue->add([query = call.query, key = call.key, sums] {
    query->grad.add_(sums[0]);
    key->grad.add_(sums[1]);
  });
}

class HeadNormFunction : public torch::autograd::Function<HeadNormFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& qkv, const Tensor& /*anchor*/,
                        const c10::intrusive_ptr<HeadNormCall>& call) {
    save_call(context, call);
    call->x = qkv.detach();
    if (call->is_fused()) {
      const auto normed = kernels::head_norm_forward(call->split(call->x), call->query->value,
                                                     call->key->value, call->pass.norm_epsilon);
      call->scale = normed.scale;
      return normed.y.view(qkv.sizes());
    }
    const Tensor x = call->normalized(call->x);
    call->scale =
        at::linalg_vector_norm(x, 2, {-1}, /*keepdim=*/true, gradient_type(x.scalar_type()));
    call->scale.square_().div_(call->heads.width).add_(call->pass.norm_epsilon).rsqrt_();
    Tensor y = call->x.clone();
    call->normalized(y).copy_(at::mul(x, call->scale).mul_(call->weights()));
    return y;
  }
  // dx = s (dy∘w) − x s³/D Σ(dy∘w∘x), head by head
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto call = saved_call<HeadNormCall>(context);
    const Tensor dy = gradients[0].contiguous();
    Tensor dx;
    if (call->is_fused()) {
      const auto made = kernels::head_norm_backward(
          call->split(dy), call->split(call->x), call->query->value, call->key->value, call->scale,
          context->needs_input_grad(0), call->query->grad.defined());
      if (made.dw.defined()) queue_sums(*call, made.dw);
      return {made.dx.defined() ? made.dx.view(dy.sizes()) : dx, Tensor(), Tensor()};
    }
    if (context->needs_input_grad(0)) {
      const Tensor x = call->normalized(call->x);
      const Tensor part = at::mul(widened(call->normalized(dy)), call->weights());
      const Tensor along = at::mul(part, x).sum(-1, /*keepdim=*/true);
      part.mul_(call->scale)
          .addcmul_(x, along.mul_(call->scale.pow(3)),
                    -1.0 / static_cast<double>(call->heads.width));
      dx = dy.clone();
      call->normalized(dx).copy_(part);
    }
    if (call->query->grad.defined()) {
      const Tensor each = at::mul(widened(call->normalized(dy)), call->normalized(call->x))
                              .mul_(call->scale)
                              .sum(at::IntArrayRef({0, 1}));  // [g+1, D]
      const Tensor sums = at::stack(                          // all that the weight part needs
          {each.narrow(0, 0, call->heads.group).sum(0), each[call->heads.group]});
      queue_sums(*call, sums);
    }
    return {dx, Tensor(), Tensor()};
  }
};

}  // namespace

Tensor qk_norm(const Pass& pass, const Tensor& qkv, const HeadShape& heads, LocalParameter* query,
               LocalParameter* key) {
  return HeadNormFunction::apply(qkv, pass.anchor_of(*query),
                                 c10::make_intrusive<HeadNormCall>(pass, heads, query, key));
}

}  // namespace polyphony::exec
