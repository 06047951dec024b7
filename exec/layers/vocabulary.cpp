#include "exec/layers/vocabulary.h"

#include <utility>

#include "exec/autograd/in_order.h"
#include "exec/autograd/saved_call.h"
#include "exec/autograd/wide_gradient.h"
#include "exec/fused/cross_entropy.h"
#include "exec/fused/forms.h"

namespace polyphony::exec {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

namespace {

// Returns the first id of this rank's share (Parameter::parts).
std::int64_t first_id(const InnerGroup& group, const LocalParameter& table) {
  return cut_begin(table.spec.shape[0], group.size(), group.index());
}

// The rank's rows of the vocabulary for a list of ids. The backward pass needs only `mine` or
// `away`.
struct LocalIds {
  Tensor ids;         // [rows] position in the local table, 0 where another rank holds it
  Tensor mine, away;  // [rows] bool, and its negation; undefined: all are mine
};
LocalIds local_ids(const InnerGroup& group, const Tensor& ids, const LocalParameter& table) {
  if (group.size() == 1) return {ids, Tensor(), Tensor()};
  Tensor shifted = ids - first_id(group, table);
  const Tensor mine = shifted.ge(0).logical_and_(shifted.lt(table.value.size(0)));
  const Tensor away = mine.logical_not();
  return {shifted.masked_fill_(away, 0), mine, away};
}

struct VocabularyCall : torch::CustomClassHolder {
  Pass pass;
  LocalParameter* weight;
  LocalIds ids;
  double scale;
  Tensor x;              // [own rows, H]; undefined when frozen
  Tensor probabilities;  // [rows, V/tp]; with our kernels (exec/fused/forms.h) the logits, and
  Tensor largest, sum;   // [rows], over the whole vocabulary
  VocabularyCall(const Pass& pass_, LocalParameter* weight_, LocalIds ids_, double scale_)
      : pass(pass_), weight(weight_), ids(std::move(ids_)), scale(scale_) {}
};

class EmbeddingFunction : public torch::autograd::Function<EmbeddingFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& /*anchor*/,
                        const c10::intrusive_ptr<VocabularyCall>& call) {
    save_call(context, call);
    Tensor y = call->weight->value.index_select(0, call->ids.ids);
    if (call->ids.away.defined()) y.masked_fill_(call->ids.away.unsqueeze(1), 0);
    call->ids.mine.reset();
    if (!call->pass.rows) call->pass.groups->tensor.all_reduce(y);
    return y;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto call = saved_call<VocabularyCall>(context);
    if (call->weight->grad.defined()) {
      call->pass.queue->add([call, dy = gradients[0]] {
        Tensor& grad = call->weight->grad;
        if (!call->ids.away.defined()) {
          add_at(grad, call->ids.ids, widened(dy));
          return;
        }
        if (!grad.is_cpu()) {  // the number of own ids is known only on the device
          add_at(grad, call->ids.ids, widened(dy).masked_fill(call->ids.away.unsqueeze(1), 0));
          return;
        }
        const Tensor mine = call->ids.away.logical_not().nonzero().squeeze(1);
        add_at(grad, call->ids.ids.index_select(0, mine), widened(dy.index_select(0, mine)));
      });
    }
    return {Tensor(), Tensor()};
  }
};

Tensor all_rows(const Pass& pass, const Tensor& x) { return pass.rows ? pass.rows->all(x) : x; }

Tensor logits_of(const Tensor& h, const LocalParameter& weight) {
  const Tensor logits = at::mm(h, weight.value.t());
  return logits.element_size() < 4 ? logits.to(torch::kFloat32) : logits;
}

// Computes the loss from logits in their own format, which are kept unchanged until the backward.
Tensor fused_loss(VocabularyCall& call, const Tensor& logits) {
  InnerGroup& group = call.pass.groups->tensor;
  auto [largest, sum, label] = kernels::logit_statistics(logits, call.ids.ids, call.ids.mine);
  const Tensor own = group.size() > 1 ? largest.clone() : largest;
  group.all_reduce(largest, Reduction::max);
  if (group.size() > 1) sum.mul_(at::exp(own - largest));
  group.all_reduce(sum);
  group.all_reduce(label);
  call.probabilities = logits;
  call.largest = largest;
  call.sum = sum;
  return (sum.log() + largest - label).sum() * call.scale;
}

// Returns the gradient of the logits [rows, V/tp]: (probability − one-hot) · scale.
Tensor logits_gradient(VocabularyCall& call, const Tensor& gradient) {
  Tensor d = std::move(call.probabilities);
  const LocalIds& ids = call.ids;
  if (call.sum.defined()) {
    kernels::logit_gradient(d, ids.ids, ids.mine, call.largest, call.sum, gradient, call.scale);
    return d;
  }
  const Tensor label = ids.ids.unsqueeze(1);
  const Tensor minus_one = ids.mine.defined() ? ids.mine.to(d.dtype()).neg_().unsqueeze(1)
                                              : torch::full_like(label, -1, d.options());
  return d.scatter_add_(1, label, minus_one).mul_(gradient * call.scale);
}

class LossFunction : public torch::autograd::Function<LossFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& h, const Tensor& /*anchor*/,
                        const c10::intrusive_ptr<VocabularyCall>& call) {
    save_call(context, call);
    if (call->weight->grad.defined()) call->x = h.detach();
    const Tensor away = std::exchange(call->ids.away, Tensor());
    InnerGroup& group = call->pass.groups->tensor;
    const Tensor rows = all_rows(call->pass, h);
    if (kernels::wanted(rows)) return fused_loss(*call, at::mm(rows, call->weight->value.t()));
    Tensor logits = logits_of(rows, *call->weight);
    Tensor target = logits.gather(1, call->ids.ids.unsqueeze(1)).squeeze(1);
    if (away.defined()) target.masked_fill_(away, 0);
    Tensor largest = logits.amax(1);
    group.all_reduce(largest, Reduction::max);
    logits.sub_(largest.unsqueeze(1)).exp_();
    Tensor sum = logits.sum(1);
    group.all_reduce(sum);
    group.all_reduce(target);
    call->probabilities = logits.div_(sum.unsqueeze(1));
    return (sum.log() + largest - target).sum() * call->scale;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto call = saved_call<VocabularyCall>(context);
    const Tensor d = logits_gradient(*call, gradients[0]).to(call->weight->value.dtype());
    Tensor x = std::move(call->x);
    if (x.defined()) x = all_rows(call->pass, x);
    Tensor dh;
    if (context->needs_input_grad(0)) {
      dh = at::mm(d, call->weight->value);
      if (call->pass.rows)
        dh = call->pass.rows->own(dh);
      else
        call->pass.groups->tensor.all_reduce(dh);
    }
    if (x.defined()) {
      call->pass.queue->add([weight = call->weight, d, x] { add_product(weight->grad, d, x); });
    }
    return {dh, Tensor(), Tensor()};
  }
};

}  // namespace

Tensor embedding(const Pass& pass, const Tensor& ids, LocalParameter* table) {
  return EmbeddingFunction::apply(
      pass.anchor_of(*table), c10::make_intrusive<VocabularyCall>(
                                  pass, table, local_ids(pass.groups->tensor, ids, *table), 1.0));
}

Tensor vocabulary_loss(const Pass& pass, const Tensor& h, const Tensor& labels, double scale,
                       LocalParameter* weight) {
  return LossFunction::apply(
      h, pass.anchor_of(*weight),
      c10::make_intrusive<VocabularyCall>(pass, weight,
                                          local_ids(pass.groups->tensor, labels, *weight), scale));
}

Predicted vocabulary_predict(const Pass& pass, const Tensor& h, const Tensor& labels,
                             LocalParameter* weight) {
  const torch::NoGradGuard no_grad;
  InnerGroup& group = pass.groups->tensor;
  const Tensor logits = logits_of(all_rows(pass, h), *weight);
  auto [largest, position] = logits.max(1);
  Tensor over_group = largest.clone();
  group.all_reduce(over_group, Reduction::max);
  const LocalIds ids = local_ids(group, labels, *weight);
  Tensor label = logits.gather(1, ids.ids.unsqueeze(1)).squeeze(1);
  if (ids.away.defined()) label.masked_fill_(ids.away, 0);
  group.all_reduce(label);
  Tensor sum = at::exp(logits - over_group.unsqueeze(1)).sum(1);
  group.all_reduce(sum);
  const Tensor losses = (sum.log() + over_group - label).to(torch::kFloat64);
  if (group.size() == 1) return {position, losses};
  // The lowest index among the ranks that hold the largest value, as a maximum of negatives. fp64
  // represents every index exactly.
  Tensor negative = position.add(first_id(group, *weight)).to(torch::kFloat64).neg_();
  negative.masked_fill_(largest.lt(over_group), -std::numeric_limits<double>::infinity());
  group.all_reduce(negative, Reduction::max);
  return {negative.neg_().to(torch::kInt64), losses};
}

}  // namespace polyphony::exec
