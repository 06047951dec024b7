#include "exec/autograd/adaptive_norm.h"

#include <utility>

#include "exec/autograd/linear.h"
#include "exec/autograd/saved_call.h"
#include "exec/autograd/wide_gradient.h"
#include "shared/error.h"

namespace polyphony::exec {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

namespace {

// Calls use(item, first row, rows) for every item that has rows here.
template <class Use>
void each_item(const std::vector<std::int64_t>& rows, Use use) {
  std::int64_t first = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] > 0) use(static_cast<std::int64_t>(i), first, rows[i]);
    first += rows[i];
  }
}

Tensor joined(std::vector<Tensor> parts, const Tensor& like) {
  if (parts.empty()) return at::empty_like(like);
  return parts.size() == 1 ? std::move(parts[0]) : at::cat(parts);
}

struct ItemsCall : torch::CustomClassHolder {
  std::vector<std::int64_t> rows;
  explicit ItemsCall(std::vector<std::int64_t> rows_) : rows(std::move(rows_)) {}
};

// As for other norms (exec/autograd/norm.cpp): on CPUs ATen's LayerNorm takes fp32 weights for bf16
// rows, and returns fp32 statistics; on GPUs the formats must be equal.
Tensor norm_parameter(const Tensor& by_item) {
  return by_item.is_cpu() ? widened(by_item) : by_item;
}

struct NormCall : ItemsCall {
  using ItemsCall::ItemsCall;
  Tensor x, weight, shift;                       // [rows, H], [n, H] 1 + scale, [n, H]
  std::vector<Tensor> mean, one_over_deviation;  // of each item with rows here
};

class AdaptiveNorm : public torch::autograd::Function<AdaptiveNorm> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& shift,
                        const Tensor& scale, const c10::intrusive_ptr<NormCall>& call) {
    save_call(context, call);
    call->x = x.detach();
    call->weight = at::add(norm_parameter(scale.detach()), 1);
    call->shift = norm_parameter(shift.detach());
    std::vector<Tensor> parts;
    each_item(call->rows, [&](std::int64_t item, std::int64_t first, std::int64_t count) {
      auto [y, mean, scaled] = at::native_layer_norm(call->x.narrow(0, first, count), {x.size(1)},
                                                     call->weight.select(0, item),
                                                     call->shift.select(0, item), kNormEpsilon);
      parts.push_back(y);
      call->mean.push_back(mean);
      call->one_over_deviation.push_back(scaled);
    });
    return joined(std::move(parts), x);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto call = saved_call<NormCall>(context);
    const Tensor& dy = gradients[0];
    const bool by_row = context->needs_input_grad(0), by_item = context->needs_input_grad(1);
    Tensor shift, scale;
    if (by_item) {
      shift = at::zeros(call->weight.sizes(), dy.options());
      scale = at::zeros_like(shift);
    }
    std::vector<Tensor> parts;
    std::size_t part = 0;
    each_item(call->rows, [&](std::int64_t item, std::int64_t first, std::int64_t count) {
      const auto [dx, weight, bias] = at::native_layer_norm_backward(
          dy.narrow(0, first, count), call->x.narrow(0, first, count), {dy.size(1)},
          call->mean[part], call->one_over_deviation[part], call->weight.select(0, item),
          call->shift.select(0, item), {by_row, by_item, by_item});
      ++part;
      if (by_row) parts.push_back(dx);
      if (!by_item) return;
      scale.select(0, item).copy_(weight);
      shift.select(0, item).copy_(bias);
    });
    return {by_row ? joined(std::move(parts), dy) : Tensor(), shift, scale, Tensor()};
  }
};

struct GateCall : ItemsCall {
  using ItemsCall::ItemsCall;
  Tensor y, gate;  // y is undefined if the gate needs no gradient
};

class GatedSum : public torch::autograd::Function<GatedSum> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& y,
                        const Tensor& gate, const c10::intrusive_ptr<GateCall>& call) {
    save_call(context, call);
    call->gate = gate.detach();
    if (gate.requires_grad()) call->y = y.detach();
    Tensor sum = at::empty_like(x);
    each_item(call->rows, [&](std::int64_t item, std::int64_t first, std::int64_t count) {
      Tensor part = sum.narrow(0, first, count);
      at::addcmul_out(part, x.narrow(0, first, count), y.narrow(0, first, count),
                      call->gate.select(0, item));
    });
    return sum;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto call = saved_call<GateCall>(context);
    const Tensor& dsum = gradients[0];
    Tensor dy, gate;
    if (context->needs_input_grad(1)) dy = at::empty_like(dsum);
    if (context->needs_input_grad(2)) gate = at::zeros(call->gate.sizes(), dsum.options());
    each_item(call->rows, [&](std::int64_t item, std::int64_t first, std::int64_t count) {
      const Tensor part = dsum.narrow(0, first, count);
      if (dy.defined()) {
        Tensor out = dy.narrow(0, first, count);
        at::mul_out(out, part, call->gate.select(0, item));
      }
      if (gate.defined())
        gate.select(0, item).copy_(at::mul(part, call->y.narrow(0, first, count)).sum(0));
    });
    return {dsum, dy, gate, Tensor()};
  }
};

void check_rows(const Tensor& x, const std::vector<std::int64_t>& rows, const Tensor& by_item) {
  std::int64_t total = 0;
  for (const std::int64_t count : rows) total += count;
  POLYPHONY_CHECK(
      x.size(0) == total && by_item.size(0) == static_cast<std::int64_t>(rows.size()),
      x.sizes() << " for " << rows.size() << " items of " << total << " rows, " << by_item.sizes());
}

}  // namespace

Tensor adaptive_norm(const Tensor& x, const Tensor& shift, const Tensor& scale,
                     const std::vector<std::int64_t>& rows) {
  check_rows(x, rows, scale);
  return AdaptiveNorm::apply(x, shift, scale, c10::make_intrusive<NormCall>(rows));
}

Tensor gated_sum(const Tensor& x, const Tensor& y, const Tensor& gate,
                 const std::vector<std::int64_t>& rows) {
  check_rows(x, rows, gate);
  return GatedSum::apply(x, y, gate, c10::make_intrusive<GateCall>(rows));
}

}  // namespace polyphony::exec
