#include "exec/experts/dispatch.h"

#include "exec/fused/combine.h"
#include "exec/fused/forms.h"
#include "exec/on_device.h"
#include "shared/chunk/parameters.h"
#include "shared/error.h"

namespace polyphony::exec {

using torch::Tensor;

namespace {

Tensor inverse_of(const Tensor& order) {
  return at::empty_like(order).index_copy_(0, order, at::arange(order.numel(), order.options()));
}

}  // namespace

Dispatch::Dispatch(InnerGroup& group, const Tensor& chosen, std::int64_t experts,
                   std::int64_t recorded)
    : group_(group), recorded_(recorded), per_token_(chosen.size(1)) {
  POLYPHONY_CHECK(experts % group.size() == 0,
                  experts << " experts on " << group.size() << " ranks");
  const Tensor slots = chosen.flatten();
  order_ = at::argsort(slots, /*stable=*/true);
  inverse_ = inverse_of(order_);
  tokens_ = order_.div(chosen.size(1), "floor");
  count(slots, experts);
}

// Counts the rows per destination. A single rank leaves that to its device. Several ranks exchange
// how many rows each has for each expert, and the host waits for the counts.
void Dispatch::count(const Tensor& slots, std::int64_t experts) {
  const auto ranks = static_cast<std::size_t>(group_.size());
  const Tensor own =
      at::zeros({experts}, slots.options()).index_add_(0, slots, at::ones_like(slots));
  if (ranks == 1 && !own.is_cpu()) {
    expert_rows_ = std::make_shared<ExpertRows>(own, group_);
    return;
  }
  arrange(group_.on_host(group_.all_gather(own, std::vector<std::int64_t>(ranks, experts))),
          experts, slots.device());
}

void Dispatch::arrange(const Tensor& all, std::int64_t experts, torch::Device device) {
  const auto ranks = static_cast<std::size_t>(group_.size());
  const std::int64_t* const counts = all.const_data_ptr<std::int64_t>();
  const auto of = [&](std::int64_t rank, std::int64_t expert) {
    return counts[rank * experts + expert];
  };
  const std::int64_t each = experts / group_.size(), first = each * group_.index();
  send_.assign(ranks, 0);
  receive_.assign(ranks, 0);
  std::vector<std::int64_t> expert_rows(static_cast<std::size_t>(each), 0);
  std::vector<std::vector<std::int64_t>> start(
      ranks);  // positions of each expert's rows, in order of arrival
  std::int64_t arrived = 0;
  for (std::size_t r = 0; r < ranks; ++r) {
    const auto rank = static_cast<std::int64_t>(r);
    for (std::int64_t e = 0; e < each; ++e) {
      send_[r] += of(group_.index(), rank * each + e);
      receive_[r] += of(rank, first + e);
      expert_rows[static_cast<std::size_t>(e)] += of(rank, first + e);
      start[r].push_back(arrived);
      arrived += of(rank, first + e);
    }
  }
  expert_rows_ = std::make_shared<ExpertRows>(std::move(expert_rows), device);
  if (ranks == 1) return;
  std::vector<std::int64_t> order;
  order.reserve(static_cast<std::size_t>(arrived));
  for (std::size_t e = 0; e < static_cast<std::size_t>(each); ++e) {
    for (std::size_t r = 0; r < ranks; ++r) {
      const std::int64_t rows =
          of(static_cast<std::int64_t>(r), first + static_cast<std::int64_t>(e));
      for (std::int64_t i = 0; i < rows; ++i) order.push_back(start[r][e] + i);
    }
  }
  arranged_ = indices_on(order, device);
  arrived_ = inverse_of(arranged_);
}

Tensor Dispatch::there(const Tensor& here) const {
  const Tensor arrived = group_.all_to_all(here, send_, receive_, recorded_);
  return arranged_.defined() ? arrived.index_select(0, arranged_) : arrived;
}

Tensor Dispatch::back(const Tensor& there) const {
  const Tensor arrived = arrived_.defined() ? there.index_select(0, arrived_) : there;
  return group_.all_to_all(arrived, receive_, send_, recorded_);
}

Tensor Dispatch::spread(const Tensor& x) const { return x.index_select(0, tokens_); }

Tensor Dispatch::combine(const Tensor& here, const Tensor& weights) const {
  if (kernels::wanted(here)) return kernels::combine(here, inverse_, weights, per_token_);
  const Tensor each = by_slot(here).view({-1, per_token_, here.size(1)});
  return weights.defined() ? each.mul(weights.unsqueeze(2)).sum(1).to(here.dtype()) : each.sum(1);
}

Dispatch::Gradients Dispatch::combine_backward(const Tensor& dy, const Tensor& here,
                                               const Tensor& weights) const {
  if (kernels::wanted(here)) {
    const auto fused = kernels::combine_backward(dy, here, order_, weights, per_token_);
    return {fused.here, fused.weights.view(weights.sizes())};
  }
  Tensor d_here = spread(dy);
  const Tensor d_weights =
      by_slot(at::mul(d_here, here).sum(1, /*keepdim=*/false, weights.scalar_type()));
  d_here.mul_(by_expert(weights.flatten()).unsqueeze(1));
  return {d_here, d_weights.view(weights.sizes())};
}

}  // namespace polyphony::exec
