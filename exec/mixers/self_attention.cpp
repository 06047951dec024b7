#include "exec/mixers/self_attention.h"

#include <algorithm>

#include "exec/attention/qk_norm.h"
#include "exec/autograd/recompute.h"
#include "exec/context_parallel/context_attention.h"
#include "exec/context_parallel/head_exchange.h"

namespace polyphony::exec {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

namespace {

// Splits `made` [T, K·(2g + 2)·D], in which each query head is followed by its gate, into qkv as
// attention reads it and the gates [T, K·g·D].
struct GatedRows {
  Tensor qkv, gates;
};
GatedRows part_gates(const Tensor& made, const HeadShape& heads) {
  const std::int64_t rows = made.size(0), group = heads.group;
  const Tensor all = made.view({rows, heads.kv_heads, 2 * group + 2, heads.width});
  const Tensor pairs = all.narrow(2, 0, 2 * group).unflatten(2, {group, 2});
  return {at::cat({pairs.select(3, 0), all.narrow(2, 2 * group, 2)}, 2)
              .view({rows, heads.kv_heads * (group + 2) * heads.width}),
          pairs.select(3, 1).reshape({rows, heads.kv_heads * group * heads.width})};
}

// Returns x times the sigmoid of its gate, which the backward pass recomputes. Source: Qwen3-Next's
// attention.
class Gated : public torch::autograd::Function<Gated> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& gate) {
    context->saved_data["x"] = x.detach();
    context->saved_data["gate"] = gate.detach();
    return at::sigmoid(gate).mul_(x);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const Tensor open = at::sigmoid(context->saved_data["gate"].toTensor());
    const Tensor d_open = at::mul(gradients[0], context->saved_data["x"].toTensor());
    return {at::mul(gradients[0], open), at::sigmoid_backward(d_open, open)};
  }
};

// Inputs of the part that selective recomputation recomputes, in addition to those of attention:
// sinks, gates.
struct ExtraInputs {
  Tensor sinks, gates;  // undefined if there are none
};

// Exchanges rows for heads before attention and back after it. Selective recomputation recomputes
// what is in between.
Recomputed exchanged_attention(const Frame& frame, const Layer& layer, const Tensor& qkv,
                               const SequencePlan& plan, const HeadShape& heads,
                               const ExtraInputs& extra) {
  const InnerGroup& context = frame.pass.groups->context;
  HeadShape mine = heads;
  mine.kv_heads /= context.size();
  std::vector<Tensor> inputs = {exchange_heads(qkv, plan, heads)};
  const std::int64_t queries = mine.kv_heads * mine.group;
  if (extra.sinks.defined())
    inputs.push_back(extra.sinks.narrow(0, context.index() * queries, queries));
  const auto run = [&plan, mine](const std::vector<Tensor>& x) {
    return attention(x[0], plan, mine, x.size() > 1 ? x[1] : Tensor());
  };
  const Tensor out =
      own_rows(plan.heads, frame.again(layer) != Recompute::selective
                               ? run(inputs)
                               : recomputed(frame.pass.anchor.detach(), inputs, run).output);
  return {extra.gates.defined() ? Gated::apply(out, extra.gates) : out, {}};
}

// Selective recomputation recomputes attention, except for the gathering of keys.
Recomputed core_attention(const Frame& frame, const Layer& layer, const Tensor& qkv,
                          const HeadShape& heads, const ExtraInputs& extra) {
  const bool slides = block_at(frame.module, layer.position - 1).attention == AttentionKind::window;
  const SequencePlan& plan = slides ? frame.windows : frame.sequences;
  if (plan.heads) return exchanged_attention(frame, layer, qkv, plan, heads, extra);
  std::vector<Tensor> inputs = {qkv};
  if (plan.context) {
    const GatheredHeads gathered = gather_keys(qkv, *plan.context, heads);
    inputs = {gathered.queries, gathered.keys};
  }
  const bool sinks = extra.sinks.defined(), gates = extra.gates.defined();
  if (sinks) inputs.push_back(extra.sinks);
  if (gates) inputs.push_back(extra.gates);
  const auto run = [&plan, heads, sinks, gates](const std::vector<Tensor>& x) {
    const Tensor sink = sinks ? x[x.size() - (gates ? 2 : 1)] : Tensor();
    const Tensor out = plan.context ? context_attention({x[0], x[1]}, plan.context, heads, sink)
                                    : attention(x[0], plan, heads, sink);
    return gates ? Gated::apply(out, x.back()) : out;
  };
  if (frame.again(layer) != Recompute::selective) return {run(inputs), {}};
  return recomputed(frame.pass.anchor.detach(), inputs, run);
}

}  // namespace

Tensor self_attention(const Frame& frame, const Layer& layer, const Tensor& normed) {
  const Module& module = frame.module;
  const std::int64_t tp = frame.pass.groups->tensor.size();
  const std::int64_t kv_heads = std::max<std::int64_t>(1, module.kv_heads / tp);
  const HeadShape heads{kv_heads, module.heads / tp / kv_heads, module.head_dim};
  Tensor qkv = column_linear(frame.pass, normed, layer.at("qkv.weight"), layer.find("qkv.bias"));
  ExtraInputs extra;
  if (module.attention_gate) {
    const GatedRows parts = part_gates(qkv, heads);
    qkv = parts.qkv;
    extra.gates = parts.gates;
  }
  if (module.qk_norm)
    qkv = qk_norm(frame.pass, qkv, heads, layer.at("q_norm.weight"), layer.at("k_norm.weight"));
  if (LocalParameter* const sinks = layer.find("sinks.weight"))
    extra.sinks = parameter_value(frame.pass, sinks);
  const Recomputed core = core_attention(frame, layer, qkv, heads, extra);
  return row_linear(frame.pass, core.output, layer.at("out.weight"), layer.find("out.bias"),
                    core.again);
}

}  // namespace polyphony::exec
