#include "exec/experts/experts.h"

#include <optional>
#include <utility>

#include "exec/autograd/glu.h"
#include "exec/autograd/saved_call.h"
#include "exec/autograd/wide_gradient.h"
#include "exec/experts/balance.h"
#include "exec/experts/dispatch.h"
#include "exec/experts/expert_products.h"
#include "exec/experts/routing.h"
#include "exec/experts/shared_gate.h"
#include "shared/error.h"

namespace polyphony::exec {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

namespace {

// What the layer's backward pass needs. Owned by the graph's node; emptied by its only backward.
struct ExpertsCall : torch::CustomClassHolder {
  Pass pass;
  std::shared_ptr<const SequenceRows> own;  // sequence parallelism
  const Module& module;
  LocalParameter *router, *router_bias;  // bias: null if there is none
  LocalParameter* choice_bias;           // likewise
  LocalParameter *gate_up, *gate_up_bias;
  LocalParameter *down, *down_bias;
  bool cut;  // experts are cut over the tensor-parallel group, whose ranks route the same rows
  BalancePlan balance;
  std::optional<Dispatch> dispatch;
  Tensor chosen, scores;          // [T, k]
  Tensor x;                       // [own rows, H]; undefined when frozen
  Tensor logits;                  // [own rows, E]; undefined without a balance loss
  Tensor rows, gates, activated;  // [R, H], glu_kept(), [R, F]: on the experts' ranks
  Tensor answers;                 // [S, H]: results returned by the experts

  ExpertsCall(const Frame& frame, const Layer& layer)
      : pass(frame.pass),
        own(frame.own),
        module(frame.module),
        router(layer.at("router.weight")),
        router_bias(layer.find("router.bias")),
        choice_bias(layer.find("router.choice_bias")),
        gate_up(layer.at("experts.gate_up.weight")),
        gate_up_bias(layer.find("experts.gate_up.bias")),
        down(layer.at("experts.down.weight")),
        down_bias(layer.find("experts.down.bias")),
        cut(down->value.size(2) < frame.module.expert_ffn),
        balance(frame.balance) {}

  InnerGroup& tensor() const { return pass.groups->tensor; }
  std::int64_t per_token() const { return module.experts_per_token; }  // k
  // Whether this rank adds the bias: one of the ranks with partial sums does.
  LocalParameter* added_down_bias() const {
    return cut && tensor().index() > 0 ? nullptr : down_bias;
  }
  // Maps rows between blocks to the rows that this rank routes.
  Tensor all(const Tensor& x_own) const { return cut && own ? own->all(x_own) : x_own; }
  // Maps partial sums for the routed rows to the sums for the rows between blocks.
  Tensor summed(Tensor y) const {
    if (cut && own) return own->own(y);
    if (cut) tensor().all_reduce(y);
    return y;
  }
  // Returns this rank's rows of a tensor that every rank has for all rows.
  Tensor part(const Tensor& routed) const { return cut && own ? own->part(routed) : routed; }
  // The number of slots that exchanges are recorded with: that of the largest share of rows.
  std::int64_t recorded_slots(std::int64_t routed) const {
    const bool shares = own && !cut;
    return per_token() * (shares ? RowShares{own->rows(), tensor().size()}.share() : routed);
  }
};

bool trains(const LocalParameter* parameter) { return parameter->grad.defined(); }

// dW_e += dyᵀ x and db_e += Σ dy over the rows of expert e.
void queue_products(const ExpertsCall& call, LocalParameter* weight, LocalParameter* bias, Tensor x,
                    Tensor dy) {
  if (!trains(weight)) return;
  call.pass.queue->add([weight, bias, x = std::move(x), dy = std::move(dy),
                        rows_of_experts = call.dispatch->expert_rows()] {
    const std::vector<std::int64_t>& expert_rows = rows_of_experts->counts();
    std::int64_t first = 0;
    for (std::size_t e = 0; e < expert_rows.size(); ++e) {
      const std::int64_t count = expert_rows[e], expert = static_cast<std::int64_t>(e);
      if (count == 0) continue;
      const Tensor rows = dy.narrow(0, first, count);
      Tensor gradient = weight->grad[expert];
      add_product(gradient, rows, x.narrow(0, first, count));
      if (bias != nullptr) {
        Tensor sums = bias->grad[expert];
        add_rows(sums, rows);
      }
      first += count;
    }
  });
}

Tensor logits_of(const ExpertsCall& call, const Tensor& x) {
  const Tensor rows = widened(x), matrix = widened(call.router->value).t();
  return call.router_bias != nullptr ? at::addmm(widened(call.router_bias->value), rows, matrix)
                                     : at::mm(rows, matrix);
}

// x [T, H] of all rows that this rank routes.
Tensor constants_of(const ExpertsCall& call) {
  return call.choice_bias != nullptr ? widened(call.choice_bias->value) : Tensor();
}

void route(ExpertsCall& call, const Tensor& x) {
  const Tensor logits = logits_of(call, x);
  if (!call.chosen.defined()) call.chosen = choose(logits, call.module, constants_of(call));
  call.scores = chosen_scores(logits, call.chosen, call.module.router_scores);
  if (call.balance.scale > 0) {
    call.logits = call.part(logits);
    if (call.logits.size(0) < logits.size(0)) call.logits = call.logits.clone();
  }
  call.dispatch.emplace(call.pass.groups->expert, call.chosen, logits.size(1),
                        call.recorded_slots(x.size(0)));
}

Tensor forward_experts(ExpertsCall& call, const Tensor& x) {
  route(call, x);
  const Dispatch& dispatch = *call.dispatch;
  const ExpertRows& expert_rows = *dispatch.expert_rows();
  const Tensor rows = dispatch.there(dispatch.spread(x));
  call.gates = glu_kept(
      expert_products(rows, call.gate_up->value.transpose(1, 2), expert_rows, call.gate_up_bias));
  const Tensor activated = glu_forward(call.gates, call.module.activation);
  if (trains(call.gate_up)) call.rows = rows;
  if (trains(call.down)) call.activated = activated;
  call.answers = dispatch.back(expert_products(activated, call.down->value.transpose(1, 2),
                                               expert_rows, call.added_down_bias()));
  return dispatch.combine(call.answers, routing_weights(call.scores, call.module));
}

// The contribution of the balance loss to the gradient of the logits of the rank's own rows.
void add_balance(ExpertsCall& call, Tensor& d_logits) {
  const BalancePlan& plan = call.balance;
  if (plan.scale == 0) return;
  const Tensor sample = call.own ? call.own->part(plan.sample) : plan.sample;
  Tensor counts =
      balance_counts(plan, call.cut ? plan.sample : sample, call.chosen, d_logits.size(1));
  if (!call.cut) call.tensor().all_reduce(counts);
  call.pass.groups->context.all_reduce(counts);
  d_logits.add_(balance_gradient(plan, sample, call.logits, counts, call.per_token()));
}

// Returns what the router adds to the gradient of the own rows, given d_weights [T, k], and queues
// its weight gradient.
Tensor backward_router(ExpertsCall& call, const Tensor& d_weights) {
  const Tensor scores = call.part(call.scores);
  const Tensor& matrix = call.router->value;
  Tensor d_logits = at::zeros({scores.size(0), matrix.size(0)}, scores.options());
  d_logits.scatter_(1, call.part(call.chosen),
                    chosen_gradient(call.part(d_weights), scores, call.module));
  add_balance(call, d_logits);
  if (trains(call.router)) {
    call.pass.queue->add(
        [router = call.router, bias = call.router_bias, x = std::move(call.x), d_logits] {
          add_product(router->grad, d_logits, widened(x));
          if (bias != nullptr) add_rows(bias->grad, d_logits);
        });
  }
  return at::mm(d_logits, widened(matrix)).to(matrix.dtype());
}

// Given dy [T, H], returns dx through the experts (a partial sum if they are cut) and d_weights
// [T, k].
Tensor backward_experts(ExpertsCall& call, const Tensor& dy, Tensor& d_weights) {
  const Dispatch& dispatch = *call.dispatch;
  const ExpertRows& expert_rows = *dispatch.expert_rows();
  auto [d_answers, d_of_weights] = dispatch.combine_backward(
      dy, std::exchange(call.answers, Tensor()), routing_weights(call.scores, call.module));
  d_weights = d_of_weights;
  if (call.cut) call.tensor().all_reduce(d_weights);
  d_answers = dispatch.there(d_answers);
  const Tensor d_activated = expert_products(d_answers, call.down->value, expert_rows);
  queue_products(call, call.down, call.down_bias, std::move(call.activated), d_answers);
  const Tensor d_gate_up =
      glu_backward(d_activated, std::exchange(call.gates, Tensor()), call.module.activation);
  const Tensor d_rows = expert_products(d_gate_up, call.gate_up->value, expert_rows);
  queue_products(call, call.gate_up, call.gate_up_bias, std::move(call.rows), d_gate_up);
  return dispatch.combine(dispatch.back(d_rows), {});
}

class ExpertsFunction : public torch::autograd::Function<ExpertsFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& /*anchor*/,
                        const c10::intrusive_ptr<ExpertsCall>& call) {
    save_call(context, call);
    if (trains(call->router)) call->x = x.detach();
    return call->summed(forward_experts(*call, call->all(x)));
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto call = saved_call<ExpertsCall>(context);
    Tensor d_weights;
    Tensor dx = call->summed(backward_experts(*call, call->all(gradients[0]), d_weights));
    return {dx.add_(backward_router(*call, d_weights)), Tensor(), Tensor()};
  }
};

}  // namespace

Tensor experts(const Frame& frame, const Layer& layer, const Tensor& x) {
  const auto call = c10::make_intrusive<ExpertsCall>(frame, layer);
  POLYPHONY_CHECK(call->cut || call->own || call->tensor().size() == 1,
                  "whole experts under tensor parallelism need sequence parallelism");
  Tensor& chosen = frame.choices[&layer];
  call->chosen = chosen;
  const Tensor routed = ExpertsFunction::apply(x, frame.pass.anchor_of(*call->router), call);
  chosen = call->chosen;
  if (frame.module.shared_ffn == 0) return routed;
  const Tensor inner = glu(column_linear(frame.pass, x, layer.at("shared.gate_up.weight"), nullptr),
                           frame.module.activation);
  const Tensor shared = row_linear(frame.pass, inner, layer.at("shared.down.weight"), nullptr);
  if (!frame.module.shared_gate) return routed + shared;
  return routed + gate_shared(frame.pass, x, shared, layer.at("shared.gate.weight"));
}

}  // namespace polyphony::exec
