#include "exec/layers/self_attention.h"

#include <algorithm>

#include "exec/attention/context_attention.h"
#include "exec/attention/qk_norm.h"
#include "exec/autograd/recompute.h"

namespace polyphony::exec {

using torch::Tensor;

namespace {

// Selective recomputation runs it again, but for the gathering of keys.
Recomputed core_attention(const Frame& frame, const Layer& layer, const Tensor& qkv,
                          const HeadShape& heads) {
  const bool slides = block_at(frame.module, layer.position - 1).attention == AttentionKind::window;
  const SequencePlan& plan = slides ? frame.windows : frame.sequences;
  const bool again = layer.recompute == Recompute::selective;
  const auto with_sinks = [&](std::vector<Tensor> inputs) {
    if (frame.module.attention_sinks && frame.module.kind == ModuleKind::language)
      inputs.push_back(parameter_value(frame.pass, layer.at("sinks.weight")));
    return inputs;
  };
  const auto sinks_in = [](const std::vector<Tensor>& inputs, std::size_t at) {
    return inputs.size() > at ? inputs[at] : Tensor();
  };
  const auto run = [&](const std::vector<Tensor>& inputs, const Rebuilt::Part& part) {
    return again ? recomputed(frame.pass.anchor.detach(), inputs, part)
                 : Recomputed{part(inputs), {}};
  };
  if (plan.context) {
    const GatheredHeads gathered = gather_keys(qkv, *plan.context, heads);
    return run(with_sinks({gathered.queries, gathered.keys}),
               [&plan, heads, sinks_in](const std::vector<Tensor>& x) {
                 return context_attention({x[0], x[1]}, plan.context, heads, sinks_in(x, 2));
               });
  }
  return run(with_sinks({qkv}), [&plan, heads, sinks_in](const std::vector<Tensor>& x) {
    return attention(x[0], plan, heads, sinks_in(x, 1));
  });
}

}  // namespace

Tensor self_attention(const Frame& frame, const Layer& layer, const Tensor& normed) {
  const Module& module = frame.module;
  const std::int64_t tp = frame.pass.groups->tensor.size();
  const std::int64_t kv_heads = std::max<std::int64_t>(1, module.kv_heads / tp);
  const HeadShape heads{kv_heads, module.heads / tp / kv_heads, module.head_dim};
  Tensor qkv = column_linear(frame.pass, normed, layer.at("qkv.weight"), layer.find("qkv.bias"));
  if (module.qk_norm)
    qkv = qk_norm(frame.pass, qkv, heads, layer.at("q_norm.weight"), layer.at("k_norm.weight"));
  const Recomputed core = core_attention(frame, layer, qkv, heads);
  return row_linear(frame.pass, core.output, layer.at("out.weight"), layer.find("out.bias"),
                    core.again);
}

}  // namespace polyphony::exec
