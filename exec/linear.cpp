#include "exec/linear.h"

#include <utility>

#include "shared/error.h"

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
    std::exchange(part, nullptr)();  // frees its tensors as it goes
  parts_.clear();
}

namespace {

// What a layer's backward needs. Held by the graph's node, emptied by its only backward.
struct LinearCall : torch::CustomClassHolder {
  enum class Kind { replicated, column, row } kind;
  Pass pass;
  LocalParameter* weight;
  LocalParameter* bias;
  Tensor x;  // [rows, in]; undefined when frozen
  LinearCall(Kind kind_, const Pass& pass_, LocalParameter* weight_, LocalParameter* bias_)
      : kind(kind_), pass(pass_), weight(weight_), bias(bias_) {}
  bool gathers_input() const { return kind == Kind::column && pass.rows != nullptr; }
};

struct NormCall : torch::CustomClassHolder {
  Pass pass;
  LocalParameter* weight;
  LocalParameter* bias;   // null: RMSNorm
  Tensor x, mean, scale;  // [rows, H], [rows, 1], [rows, 1]: 1 ÷ deviation
  NormCall(const Pass& pass_, LocalParameter* weight_, LocalParameter* bias_)
      : pass(pass_), weight(weight_), bias(bias_) {}
};

constexpr const char* kCall = "call";

template <class Call>
void keep(AutogradContext* context, const c10::intrusive_ptr<Call>& call) {
  context->saved_data[kCall] = c10::IValue::make_capsule(call);
}
template <class Call>
c10::intrusive_ptr<Call> kept(AutogradContext* context) {
  return c10::static_intrusive_pointer_cast<Call>(context->saved_data[kCall].toCapsule());
}

bool trains(const LocalParameter* parameter) {
  return parameter != nullptr && parameter->grad.defined();
}

// dW += dyᵀ x, db += Σ dy over the rows that the bias was added to.
void queue_linear(const Pass& pass, LocalParameter* weight, LocalParameter* bias, Tensor x,
                  Tensor dy, Tensor bias_dy) {
  if (!trains(weight)) return;
  pass.queue->add(
      [weight, bias, x = std::move(x), dy = std::move(dy), bias_dy = std::move(bias_dy)] {
        weight->grad.addmm_(dy.t(), x);
        if (bias != nullptr) bias->grad.add_(bias_dy.sum(0));
      });
}

class LinearFunction : public torch::autograd::Function<LinearFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& /*anchor*/,
                        const c10::intrusive_ptr<LinearCall>& call) {
    keep(context, call);
    if (trains(call->weight)) call->x = x.detach();
    const Tensor& weight = call->weight->value;
    const bool row = call->kind == LinearCall::Kind::row;
    const Tensor all = call->gathers_input() ? call->pass.rows->all(x) : x;
    Tensor y = call->bias != nullptr && !row ? at::addmm(call->bias->value, all, weight.t())
                                             : at::mm(all, weight.t());
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
    const auto call = kept<LinearCall>(context);
    const RowExchange* rows = call->pass.rows.get();
    const Tensor& dy = gradients[0];
    const Tensor all_dy = rows && call->kind == LinearCall::Kind::row ? rows->all(dy) : dy;
    Tensor x = std::move(call->x);
    if (call->gathers_input() && x.defined()) x = rows->all(x);
    Tensor dx;
    if (context->needs_input_grad(0)) {
      dx = at::mm(all_dy, call->weight->value);
      if (call->gathers_input())
        dx = rows->own(dx);
      else if (call->kind == LinearCall::Kind::column)
        call->pass.groups->tensor.all_reduce(dx);
    }
    queue_linear(call->pass, call->weight, call->bias, std::move(x), all_dy, dy);
    return {dx, Tensor(), Tensor()};
  }
};

class LayerNormFunction : public torch::autograd::Function<LayerNormFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& /*anchor*/,
                        const c10::intrusive_ptr<NormCall>& call) {
    keep(context, call);
    auto [y, mean, scale] =
        at::native_layer_norm(x, {x.size(1)}, call->weight->value, call->bias->value, kNormEpsilon);
    call->x = x.detach();
    call->mean = mean;
    call->scale = scale;
    return y;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto call = kept<NormCall>(context);
    const auto part = [call, dy = gradients[0]](std::array<bool, 3> which) {
      return at::native_layer_norm_backward(dy, call->x, {call->x.size(1)}, call->mean, call->scale,
                                            call->weight->value, call->bias->value, which);
    };
    Tensor dx;
    if (context->needs_input_grad(0)) dx = std::get<0>(part({true, false, false}));
    if (trains(call->weight)) {
      call->pass.queue->add([call, part] {
        const auto [none, weight, bias] = part({false, true, true});
        call->weight->grad.add_(weight);
        call->bias->grad.add_(bias);
      });
    }
    return {dx, Tensor(), Tensor()};
  }
};

class RmsNormFunction : public torch::autograd::Function<RmsNormFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& /*anchor*/,
                        const c10::intrusive_ptr<NormCall>& call) {
    keep(context, call);
    call->x = x.detach();
    call->scale = at::linalg_vector_norm(x, 2, {-1}, /*keepdim=*/true);
    call->scale.square_().div_(x.size(1)).add_(kNormEpsilon).rsqrt_();
    return at::mul(x, call->scale).mul_(call->weight->value);
  }
  // dx = s (dy∘w) − x s³/H Σ(dy∘w∘x)
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto call = kept<NormCall>(context);
    const Tensor& dy = gradients[0];
    Tensor dx;
    if (context->needs_input_grad(0)) {
      dx = at::mul(dy, call->weight->value);
      const Tensor along = at::mul(dx, call->x).sum(1, /*keepdim=*/true);
      dx.mul_(call->scale)
          .addcmul_(call->x, along.mul_(call->scale.pow(3)),
                    -1.0 / static_cast<double>(dy.size(1)));
    }
    if (trains(call->weight)) {
      call->pass.queue->add(
          [call, dy] { call->weight->grad.add_(at::mul(dy, call->x).mul_(call->scale).sum(0)); });
    }
    return {dx, Tensor(), Tensor()};
  }
};

Tensor linear(LinearCall::Kind kind, const Pass& pass, const Tensor& x, LocalParameter* weight,
              LocalParameter* bias) {
  return LinearFunction::apply(x, pass.anchor,
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
    keep(context, call);
    const Tensor& table = call->table->value;
    if (call->rows.defined()) return at::add(x, table.index_select(0, call->rows));
    return at::add(x.view({-1, table.size(0), table.size(1)}), table).view(x.sizes());
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto call = kept<TableCall>(context);
    const Tensor& dy = gradients[0];
    if (trains(call->table)) {
      call->pass.queue->add([call, dy] {
        Tensor& grad = call->table->grad;
        if (call->rows.defined()) {
          grad.index_add_(0, call->rows, dy);
        } else {
          grad.add_(dy.reshape({-1, grad.size(0), grad.size(1)}).sum(0));
        }
      });
    }
    return {dy, Tensor(), Tensor()};
  }
};

}  // namespace

Tensor column_linear(const Pass& pass, const Tensor& x, LocalParameter* weight,
                     LocalParameter* bias) {
  return linear(LinearCall::Kind::column, pass, x, weight, bias);
}
Tensor row_linear(const Pass& pass, const Tensor& x, LocalParameter* weight, LocalParameter* bias) {
  return linear(LinearCall::Kind::row, pass, x, weight, bias);
}
Tensor replicated_linear(const Pass& pass, const Tensor& x, LocalParameter* weight,
                         LocalParameter* bias) {
  return linear(LinearCall::Kind::replicated, pass, x, weight, bias);
}
Tensor layer_norm(const Pass& pass, const Tensor& x, LocalParameter* weight, LocalParameter* bias) {
  return LayerNormFunction::apply(x, pass.anchor,
                                  c10::make_intrusive<NormCall>(pass, weight, bias));
}
Tensor rms_norm(const Pass& pass, const Tensor& x, LocalParameter* weight) {
  return RmsNormFunction::apply(x, pass.anchor,
                                c10::make_intrusive<NormCall>(pass, weight, nullptr));
}
Tensor add_position(const Pass& pass, const Tensor& x, const Tensor& rows, LocalParameter* table) {
  auto call = c10::make_intrusive<TableCall>(pass, table);
  call->rows = rows;
  return PositionFunction::apply(x, pass.anchor, call);
}

}  // namespace polyphony::exec
