#include "exec/attention/cross_attention.h"

#include <utility>

#include "exec/attention_calls/heads_attention.h"
#include "exec/autograd/saved_call.h"
#include "shared/error.h"

namespace polyphony::exec {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

namespace {

struct CrossCall : torch::CustomClassHolder {
  std::shared_ptr<const AttentionCalls> calls;
  std::int64_t width;                  // D
  Tensor query, key_value, out, sums;  // saved for the backward pass; sums [A, 1, L]
  CrossCall(std::shared_ptr<const AttentionCalls> calls_, std::int64_t width_)
      : calls(std::move(calls_)), width(width_) {}

  // [rows, A·D] <-> [A, 1, rows, D]
  Tensor heads(const Tensor& rows) const {
    return rows.view({rows.size(0), rows.size(1) / width, 1, width}).permute({1, 2, 0, 3});
  }
  static Tensor rows(const Tensor& heads) {
    return heads.permute({2, 0, 1, 3}).reshape({heads.size(2), heads.size(0) * heads.size(3)});
  }
  HeadTensors heads(const Tensor& queries, const Tensor& read) const {
    const Tensor both =
        read.view({read.size(0), read.size(1) / (2 * width), 2, 1, width}).permute({2, 1, 3, 0, 4});
    return {heads(queries), both[0], both[1]};
  }
};

class CrossAttention : public torch::autograd::Function<CrossAttention> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& query, const Tensor& key_value,
                        const c10::intrusive_ptr<CrossCall>& call) {
    save_call(context, call);
    const Attended made = attend(call->heads(query, key_value), *call->calls);
    Tensor y = CrossCall::rows(made.out);
    call->query = query.detach();
    call->key_value = key_value.detach();
    call->out = y.detach();
    call->sums = made.sums;
    return y;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto call = saved_call<CrossCall>(context);
    const Tensor query = std::exchange(call->query, Tensor()),
                 key_value = std::exchange(call->key_value, Tensor());
    const Attended made{call->heads(std::exchange(call->out, Tensor())),
                        std::exchange(call->sums, Tensor())};
    const HeadTensors d = attend_backward(call->heads(gradients[0].contiguous()),
                                          call->heads(query, key_value), made, *call->calls);
    const Tensor both = at::stack({d.keys, d.values}, 2);  // [A, 1, 2, C, D]
    return {CrossCall::rows(d.queries), both.permute({3, 0, 1, 2, 4}).reshape(key_value.sizes()),
            Tensor()};
  }
};

}  // namespace

std::shared_ptr<const AttentionCalls> plan_cross(const std::vector<std::int64_t>& lengths,
                                                 const std::vector<std::int64_t>& condition_lengths,
                                                 torch::Device device) {
  POLYPHONY_CHECK(lengths.size() == condition_lengths.size(),
                  lengths.size() << " items, conditioning of " << condition_lengths.size());
  std::vector<Rectangle> items;
  Interval rows, read;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    rows = {rows.end, rows.end + lengths[i]};
    read = {read.end, read.end + condition_lengths[i]};
    if (rows.size() > 0 && read.size() > 0) items.push_back(full_rectangle(rows, read));
  }
  return std::make_shared<AttentionCalls>(
      calls_for(items, {{0, rows.end}}, {{0, read.end}}, device));
}

Tensor cross_attention(const Tensor& query, const Tensor& key_value,
                       std::shared_ptr<const AttentionCalls> calls, std::int64_t head_width) {
  return CrossAttention::apply(query, key_value,
                               c10::make_intrusive<CrossCall>(std::move(calls), head_width));
}

}  // namespace polyphony::exec
