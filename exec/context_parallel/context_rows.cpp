#include "exec/context_parallel/context_rows.h"

#include <optional>
#include <utility>

#include "exec/attention/head_rows.h"
#include "exec/attention_calls/heads_attention.h"
#include "exec/autograd/saved_call.h"
#include "exec/context_parallel/head_groups.h"

namespace polyphony::exec {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

namespace {

struct ContextCall : torch::CustomClassHolder {
  std::shared_ptr<const ContextPlan> plan;
  HeadShape heads;
  Tensor queries, keys, out;  // [K, g, T, D], [G, 2·K·D], [T, K·g·D]
  Tensor sinks;               // [K·g]; undefined: none
  Tensor sums;                // [K, g, T]
  ContextCall(std::shared_ptr<const ContextPlan> plan_, const HeadShape& heads_)
      : plan(std::move(plan_)), heads(heads_) {}
};

class RowContextAttention : public torch::autograd::Function<RowContextAttention> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& queries, const Tensor& keys,
                        const std::optional<Tensor>& /*sinks*/,
                        const c10::intrusive_ptr<ContextCall>& call) {
    save_call(context, call);
    const ContextPlan& plan = *call->plan;
    Attended made = plan.ring        ? attend_round(*plan.ring, queries, keys, call->heads)
                    : plan.heads > 0 ? attend_groups(plan, queries, keys, call->heads)
                                     : attend(with_keys(queries, keys, call->heads), plan.calls);
    if (call->sinks.defined()) add_sinks(made, sinks_of(call->sinks, 1, call->heads));
    Tensor y = join_outputs(made.out, call->plan->rows, call->heads);
    call->queries = queries.detach();
    call->keys = keys.detach();
    call->out = y.detach();
    call->sums = made.sums;
    return y;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto call = saved_call<ContextCall>(context);
    const Tensor queries = std::exchange(call->queries, Tensor());
    const Tensor keys = std::exchange(call->keys, Tensor());
    const Tensor sinks = std::exchange(call->sinks, Tensor());
    const Tensor dy = split_outputs(gradients[0], call->plan->rows, call->heads);
    const Attended made{
        split_outputs(std::exchange(call->out, Tensor()), call->plan->rows, call->heads),
        std::exchange(call->sums, Tensor())};
    Tensor d_sinks;
    if (sinks.defined())
      d_sinks =
          sum_by_head(sink_gradient(dy, made, sinks_of(sinks, 1, call->heads)), 1, call->heads);
    if (call->plan->comes_by()) {
      const ContextPlan& plan = *call->plan;
      const RoundGradients d =
          plan.ring ? attend_round_backward(*plan.ring, dy, queries, keys, made, call->heads)
                    : attend_groups_backward(plan, dy, queries, keys, made, call->heads);
      return {d.queries, d.keys, d_sinks, Tensor()};
    }
    const HeadTensors d =
        attend_backward(dy, with_keys(queries, keys, call->heads), made, call->plan->calls);
    return {d.queries, key_rows(d), d_sinks, Tensor()};
  }
};

}  // namespace

Tensor row_context_attention(const Tensor& queries, const Tensor& keys,
                             std::shared_ptr<const ContextPlan> plan, const HeadShape& heads,
                             const Tensor& sinks) {
  const auto call = c10::make_intrusive<ContextCall>(std::move(plan), heads);
  call->sinks = sinks.defined() ? sinks.detach() : Tensor();
  // An autograd function does not accept an undefined tensor.
  return RowContextAttention::apply(queries, keys,
                                    sinks.defined() ? std::optional(sinks) : std::nullopt, call);
}

}  // namespace polyphony::exec
