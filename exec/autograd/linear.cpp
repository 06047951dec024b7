#include "exec/autograd/linear.h"

#include <optional>
#include <tuple>
#include <utility>

#include "exec/autograd/in_order.h"
#include "exec/autograd/lora.h"
#include "exec/autograd/pieced_product.h"
#include "exec/autograd/saved_call.h"
#include "exec/autograd/weight_products.h"
#include "exec/autograd/wide_gradient.h"

namespace polyphony::exec {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

void WeightQueue::add(std::function<void()> part) {
  if (immediate) {
    part();
  } else {
    parts_.push_back(std::move(part));
  }
}

void WeightQueue::run() {
  const torch::NoGradGuard no_grad;
  for (std::function<void()>& part : parts_)
    std::exchange(part, nullptr)();  // frees the part's tensors after it has run
  parts_.clear();
}

namespace {

// The state that a layer's backward pass needs. The graph's node owns it, and its only backward
// pass empties it.
struct LinearCall : torch::CustomClassHolder {
  enum class Kind { replicated, column, row } kind;
  Pass pass;
  LocalParameter* weight;
  LocalParameter* bias;
  Tensor x;  // [rows, in]; undefined if frozen, or if `again` recomputes it
  Tensor h;  // LoRA: [rows, r]
  c10::intrusive_ptr<Rebuilt> again;
  LinearCall(Kind kind_, const Pass& pass_, LocalParameter* weight_, LocalParameter* bias_)
      : kind(kind_), pass(pass_), weight(weight_), bias(bias_) {}
  bool gathers_input() const { return kind == Kind::column && pass.rows != nullptr; }
  // `rows`: number of all rows; ignored if rows are shared.
  std::optional<PiecedProduct> pieced(const Tensor& rows) const {
    InnerGroup& group = pass.groups->tensor;
    const auto* run = dynamic_cast<const SequenceRows*>(pass.rows.get());
    if (pass.pieces == 1 || group.size() == 1 || (pass.rows && run == nullptr)) return {};
    return PiecedProduct(group, run ? run->rows() : rows.size(0), run != nullptr, pass.pieces);
  }
  // Returns true if there is a weight part: for the matrix, or for its low-rank pair.
  bool wants_input() const { return weight->grad.defined() || weight->lora_a; }
};

bool trains(const LocalParameter* parameter) {
  return parameter != nullptr && parameter->grad.defined();
}

// dW += dyᵀ x, db += Σ dy over the rows that the bias was added to.
void queue_linear(const Pass& pass, LocalParameter* weight, LocalParameter* bias, Tensor x,
                  Tensor dy, Tensor bias_dy) {
  if (!trains(weight)) return;
  pass.queue->add(
      [weight, bias, x = std::move(x), dy = std::move(dy), bias_dy = std::move(bias_dy)] {
        add_weight_gradient(*weight, dy, x);
        if (bias != nullptr) add_rows(bias->grad, bias_dy);
      });
}

class LinearFunction : public torch::autograd::Function<LinearFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& /*anchor*/,
                        const c10::intrusive_ptr<LinearCall>& call) {
    save_call(context, call);
    if (call->wants_input() && !call->again) call->x = x.detach();
    const bool row = call->kind == LinearCall::Kind::row;
    if (call->gathers_input() || row)
      if (const auto pieced = call->pieced(x))
        return row ? summed(*call, *pieced, x) : gathered(*call, *pieced, x);
    const Tensor all = call->gathers_input() ? call->pass.rows->all(x) : x;
    Tensor y = output_product(*call->weight, row ? nullptr : call->bias, all);
    if (call->weight->lora_a) call->h = add_low_rank(*call->weight, all, y);
    if (row) {
      if (call->pass.rows)
        y = call->pass.rows->own(y);
      else
        call->pass.groups->tensor.all_reduce(y);
      if (call->bias != nullptr) y.add_(call->bias->value);
    }
    return y;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto call = saved_call<LinearCall>(context);
    const RowExchange* rows = call->pass.rows.get();
    const bool column = call->kind == LinearCall::Kind::column;
    const bool gathers = rows != nullptr && call->kind == LinearCall::Kind::row;
    const bool wants_dx = context->needs_input_grad(0);
    const Tensor& dy = gradients[0];
    const auto pieced = gathers || (column && wants_dx) ? call->pieced(dy) : std::nullopt;
    Tensor dx, all_dy = dy;
    if (gathers && pieced)
      std::tie(all_dy, dx) = gathered_backward(*call, *pieced, dy, wants_dx);
    else if (gathers)
      all_dy = rows->all(dy);
    Tensor x = std::move(call->x);
    if (call->again && call->wants_input()) x = call->again->output();
    // On a device its own rows are gathered in parallel with the GEMM that does not need them.
    const auto input_part = [&] {
      if (wants_dx && !pieced) dx = input_gradient(*call->weight, all_dy);
    };
    const bool gathers_x = call->gathers_input() && x.defined();
    if (gathers_x && wants_dx && !pieced && !dy.is_cpu()) {
      x = rows->all_beside(x, input_part);
    } else {
      if (gathers_x) x = rows->all(x);
      input_part();
    }
    std::vector<Term> terms{{dy, call->weight->value}};
    if (call->weight->lora_a && column && pieced) {
      terms.push_back({low_rank_gradient(*call->weight, dy), call->weight->lora_a->value});
      queue_low_rank(call->pass, *call->weight, x, std::move(call->h), dy, terms.back().x);
    } else if (call->weight->lora_a) {
      low_rank_backward(call->pass, *call->weight, x, std::move(call->h), all_dy, dx);
    }
    // Own rows are a run of the gathered rows, which stay in memory: a view needs no further
    // memory.
    const auto* run = dynamic_cast<const SequenceRows*>(rows);
    const bool part = run != nullptr && gathers && all_dy.defined();
    const Tensor bias_dy = call->bias == nullptr ? Tensor() : part ? run->part(all_dy) : dy;
    // On a device this overlaps with the sum of dx over the ranks; elsewhere it comes after that
    // sum, when the whole dx has been freed.
    const InnerGroup::BesideIt weight_part = [&] {
      queue_linear(call->pass, call->weight, call->bias, std::move(x), all_dy, bias_dy);
    };
    const bool sums = wants_dx && column, at_once = sums && !dy.is_cpu();
    const InnerGroup::BesideIt beside = at_once ? weight_part : InnerGroup::BesideIt();
    if (sums && pieced)
      dx = pieced->summed(terms, beside);
    else if (sums && rows != nullptr)
      dx = rows->own_beside(dx, beside);
    else if (sums)
      call->pass.groups->tensor.all_reduce(dx, Reduction::sum, beside);
    if (!at_once) weight_part();
    return {dx, Tensor(), Tensor()};
  }

 private:
  // Returns y of a row-parallel layer.
  static Tensor summed(LinearCall& call, const PiecedProduct& pieced, const Tensor& x) {
    const LocalParameter& weight = *call.weight;
    std::vector<Term> terms{{x, weight.value.t()}};
    if (weight.lora_a) {
      call.h = at::mm(x, weight.lora_a->value.t()).mul_(weight.lora_scale);
      terms.push_back({call.h, weight.lora_b->value.t()});
    }
    Tensor y = pieced.summed(terms);
    if (call.bias != nullptr) y.add_(call.bias->value);
    return y;
  }
  // Returns y of a column-parallel layer whose rows are shared.
  static Tensor gathered(LinearCall& call, const PiecedProduct& pieced, const Tensor& x) {
    const LocalParameter& weight = *call.weight;
    Tensor y = at::empty({pieced.rows(), weight.value.size(0)}, x.options());
    if (weight.lora_a)
      call.h = at::empty({pieced.rows(), weight.lora_a->value.size(0)}, x.options());
    pieced.gathered(x, [&](const RowBlock& block, const Tensor& rows) {
      Tensor out = pieced.of_all(y, block);
      multiply(out, rows, weight.value.t());
      if (call.bias != nullptr) out.add_(call.bias->value);
      if (!weight.lora_a) return;
      Tensor h = pieced.of_all(call.h, block);
      multiply(h, rows, weight.lora_a->value.t());
      multiply(out, h.mul_(weight.lora_scale), weight.lora_b->value.t(), true);
    });
    return y;
  }
  // For a row-parallel layer whose rows are shared, returns all rows of dy for the weight part (if
  // wanted), and dx.
  static std::pair<Tensor, Tensor> gathered_backward(const LinearCall& call,
                                                     const PiecedProduct& pieced, const Tensor& dy,
                                                     bool wants_dx) {
    const Tensor& weight = call.weight->value;
    Tensor all, dx;
    if (call.wants_input()) all = at::empty({pieced.rows(), weight.size(0)}, dy.options());
    if (wants_dx) dx = at::empty({pieced.rows(), weight.size(1)}, dy.options());
    pieced.gathered(dy, [&](const RowBlock& block, const Tensor& rows) {
      if (all.defined()) pieced.of_all(all, block).copy_(rows);
      if (wants_dx) multiply(pieced.of_all(dx, block), rows, weight);
    });
    return {all, dx};
  }
};

Tensor linear(LinearCall::Kind kind, const Pass& pass, const Tensor& x, LocalParameter* weight,
              LocalParameter* bias) {
  return LinearFunction::apply(x, pass.anchor_of(*weight),
                               c10::make_intrusive<LinearCall>(kind, pass, weight, bias));
}

struct TableCall : torch::CustomClassHolder {
  Pass pass;
  LocalParameter* table;
  Tensor rows;
  TableCall(const Pass& pass_, LocalParameter* table_) : pass(pass_), table(table_) {}
};

class PositionFunction : public torch::autograd::Function<PositionFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& /*anchor*/,
                        const c10::intrusive_ptr<TableCall>& call) {
    save_call(context, call);
    const Tensor& table = call->table->value;
    if (call->rows.defined()) return at::add(x, table.index_select(0, call->rows));
    return at::add(x.view({-1, table.size(0), table.size(1)}), table).view(x.sizes());
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto call = saved_call<TableCall>(context);
    const Tensor& dy = gradients[0];
    if (trains(call->table)) {
      call->pass.queue->add([call, dy] {
        Tensor& grad = call->table->grad;
        if (call->rows.defined()) {
          add_at(grad, call->rows, widened(dy));
        } else {
          add_rows(grad, dy.reshape({-1, grad.size(0), grad.size(1)}));
        }
      });
    }
    return {dy, Tensor(), Tensor()};
  }
};

class ValueFunction : public torch::autograd::Function<ValueFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& /*anchor*/,
                        const c10::intrusive_ptr<TableCall>& call) {
    save_call(context, call);
    const Tensor& value = call->table->value;
    return value.to(gradient_type(value.scalar_type()), /*non_blocking=*/false, /*copy=*/true);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto call = saved_call<TableCall>(context);
    if (trains(call->table))
      call->pass.queue->add([call, dy = gradients[0]] { call->table->grad.add_(dy); });
    return {Tensor(), Tensor()};
  }
};

}  // namespace

Tensor column_linear(const Pass& pass, const Tensor& x, LocalParameter* weight,
                     LocalParameter* bias) {
  return linear(LinearCall::Kind::column, pass, x, weight, bias);
}
Tensor row_linear(const Pass& pass, const Tensor& x, LocalParameter* weight, LocalParameter* bias,
                  const c10::intrusive_ptr<Rebuilt>& again) {
  auto call = c10::make_intrusive<LinearCall>(LinearCall::Kind::row, pass, weight, bias);
  call->again = again;
  return LinearFunction::apply(x, pass.anchor_of(*weight), call);
}
Tensor replicated_linear(const Pass& pass, const Tensor& x, LocalParameter* weight,
                         LocalParameter* bias) {
  return linear(LinearCall::Kind::replicated, pass, x, weight, bias);
}
Tensor parameter_value(const Pass& pass, LocalParameter* parameter) {
  return ValueFunction::apply(pass.anchor_of(*parameter),
                              c10::make_intrusive<TableCall>(pass, parameter));
}
Tensor add_position(const Pass& pass, const Tensor& x, const Tensor& rows, LocalParameter* table) {
  auto call = c10::make_intrusive<TableCall>(pass, table);
  call->rows = rows;
  return PositionFunction::apply(x, pass.anchor_of(*table), call);
}

}  // namespace polyphony::exec
