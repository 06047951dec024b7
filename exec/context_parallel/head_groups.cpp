#include "exec/context_parallel/head_groups.h"

#include "exec/autograd/beside.h"

namespace polyphony::exec {

using torch::Tensor;

namespace {

// The keys and values of this rank by group of heads, and their gradients.
class Groups {
 public:
  Groups(const ContextPlan& plan, const HeadShape& heads)
      : plan_(plan),
        shape_{plan.heads, heads.group, heads.width},
        count_(heads.kv_heads / plan.heads) {}
  std::int64_t count() const { return count_; }
  const HeadShape& shape() const { return shape_; }
  // Returns the heads of one group.
  Tensor part(const Tensor& x, std::int64_t group) const {
    return x.narrow(0, group * shape_.kv_heads, shape_.kv_heads);
  }
  // Returns this rank's own rows of one group.
  Tensor rows(const Tensor& x, std::int64_t group) const {
    return x.narrow(0, group * plan_.rows.rows, plan_.rows.rows);
  }
  // Returns the group's keys of all ranks in gathered order; ordered() sorts them by sample and
  // position, and unordered() undoes that.
  Tensor gathered(const Tensor& keys, std::int64_t group,
                  const InnerGroup::BesideIt& beside = {}) const {
    return plan_.gather->all_beside(rows(keys, group), beside);
  }
  Tensor ordered(const Tensor& all) const {
    return plan_.order.defined() ? all.index_select(0, plan_.order) : all;
  }
  Tensor unordered(const Tensor& all) const {
    return plan_.inverse.defined() ? all.index_select(0, plan_.inverse) : all;
  }
  Tensor scattered(const Tensor& all, const InnerGroup::BesideIt& beside = {}) const {
    return plan_.gather->own_beside(all, beside);
  }

 private:
  const ContextPlan& plan_;
  HeadShape shape_;  // of one group of heads
  std::int64_t count_;
};

}  // namespace

Attended attend_groups(const ContextPlan& plan, const Tensor& queries, const Tensor& keys,
                       const HeadShape& heads) {
  const Groups groups(plan, heads);
  Attended all{at::empty_like(queries), {}};
  Tensor next = groups.gathered(keys, 0);
  for (std::int64_t group = 0; group < groups.count(); ++group) {
    const Tensor rows = groups.ordered(next);
    std::vector<Move> moves;
    if (group + 1 < groups.count())
      moves.emplace_back([&](const auto& work) { next = groups.gathered(keys, group + 1, work); });
    beside(queries.device(), moves, [&] {
      const Attended one =
          attend(with_keys(groups.part(queries, group), rows, groups.shape()), plan.calls);
      if (!all.sums.defined())
        all.sums = at::empty(queries.sizes().slice(0, 3), one.sums.options());
      groups.part(all.out, group).copy_(one.out);
      groups.part(all.sums, group).copy_(one.sums);
    });
  }
  return all;
}

RoundGradients attend_groups_backward(const ContextPlan& plan, const Tensor& dy,
                                      const Tensor& queries, const Tensor& keys,
                                      const Attended& attended, const HeadShape& heads) {
  const Groups groups(plan, heads);
  RoundGradients all{at::empty_like(queries), at::empty_like(keys)};
  Tensor next = groups.gathered(keys, 0), leaving;
  for (std::int64_t group = 0; group < groups.count(); ++group) {
    const Tensor rows = groups.ordered(next);
    Tensor arrived, gradients;
    std::vector<Move> moves;
    if (group + 1 < groups.count())
      moves.emplace_back([&](const auto& work) { next = groups.gathered(keys, group + 1, work); });
    if (group > 0)
      moves.emplace_back([&](const auto& work) { arrived = groups.scattered(leaving, work); });
    beside(queries.device(), moves, [&] {
      const HeadTensors one = attend_backward(
          groups.part(dy, group), with_keys(groups.part(queries, group), rows, groups.shape()),
          {groups.part(attended.out, group), groups.part(attended.sums, group)}, plan.calls);
      groups.part(all.queries, group).copy_(one.queries);
      gradients = groups.unordered(key_rows(one));
    });
    if (group > 0) groups.rows(all.keys, group - 1).copy_(arrived);
    leaving = gradients;
  }
  groups.rows(all.keys, groups.count() - 1).copy_(groups.scattered(leaving));
  return all;
}

}  // namespace polyphony::exec
