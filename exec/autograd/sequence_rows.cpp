#include "exec/autograd/sequence_rows.h"
#include "exec/autograd/saved_call.h"

#include <numeric>
#include <utility>

#include "shared/error.h"

namespace polyphony::exec {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

Tensor padded_to(const Tensor& x, std::int64_t rows) {
  const std::int64_t own = x.size(0);
  if (own == rows) return x;
  // Not at::constant_pad_nd, which first writes zeros to all elements.
  const Tensor padded = at::empty({rows, x.size(1)}, x.options());
  padded.narrow(0, 0, own).copy_(x);
  padded.narrow(0, own, rows - own).zero_();
  return padded;
}
Tensor first_rows(const Tensor& x, std::int64_t rows) {
  return x.size(0) == rows ? x : x.narrow(0, 0, rows);
}

namespace {

struct RowsCall : torch::CustomClassHolder {
  std::shared_ptr<const RowExchange> rows;
  explicit RowsCall(std::shared_ptr<const RowExchange> rows_) : rows(std::move(rows_)) {}
};

// One of all() and own() in the forward pass, and the other in the backward pass.
class MoveRows : public torch::autograd::Function<MoveRows> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, bool gathers,
                        const c10::intrusive_ptr<RowsCall>& call) {
    save_call(context, call);
    context->saved_data["gathers"] = gathers;
    return gathers ? call->rows->all(x) : call->rows->own(x);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto call = saved_call<RowsCall>(context);
    const bool gathered = context->saved_data["gathers"].toBool();
    return {gathered ? call->rows->own(gradients[0]) : call->rows->all(gradients[0]), Tensor(),
            Tensor()};
  }
};

class SelectRows : public torch::autograd::Function<SelectRows> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& rows) {
    context->saved_data["rows"] = rows;
    context->saved_data["size"] = x.size(0);
    return x.index_select(0, rows);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const Tensor& dy = gradients[0];
    Tensor dx = dy.new_zeros({context->saved_data["size"].toInt(), dy.size(1)});
    dx.index_copy_(0, context->saved_data["rows"].toTensor(), dy);
    return {dx, Tensor()};
  }
};

class PlaceRows : public torch::autograd::Function<PlaceRows> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& places,
                        std::int64_t rows) {
    context->saved_data["places"] = places;
    return x.new_zeros({rows, x.size(1)}).index_copy_(0, places, x);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {gradients[0].index_select(0, context->saved_data["places"].toTensor()), Tensor(),
            Tensor()};
  }
};

}  // namespace

std::vector<std::int64_t> SequenceRows::parts() const {
  return std::vector<std::int64_t>(static_cast<std::size_t>(shares_.members), shares_.share());
}

Tensor SequenceRows::all(const Tensor& own) const { return all_beside(own, {}); }

Tensor SequenceRows::all_beside(const Tensor& own, const InnerGroup::BesideIt& beside) const {
  POLYPHONY_CHECK(own.size(0) == count(),
                  own.size(0) << " rows on rank " << group_.index() << " of " << shares_.members
                              << ", whose share of " << shares_.rows << " is " << count());
  return first_rows(group_.all_gather(padded_to(own, shares_.share()), parts(), beside),
                    shares_.rows);
}

Tensor SequenceRows::own(const Tensor& all) const { return own_beside(all, {}); }

Tensor SequenceRows::own_beside(const Tensor& all, const InnerGroup::BesideIt& beside) const {
  POLYPHONY_CHECK(all.size(0) == shares_.rows, all.size(0) << " rows of " << shares_.rows);
  return first_rows(group_.reduce_scatter(padded_to(all, shares_.padded()), parts(), beside),
                    count());
}

Tensor SequenceRows::part(const Tensor& whole) const { return whole.narrow(0, begin(), count()); }

ListedPart SequenceRows::listed(const Tensor& rows) const {
  POLYPHONY_CHECK(
      rows.is_cpu() && rows.is_contiguous(),
      "row indices must be contiguous and on the host (a device would have to be waited "
      "for)");
  const std::int64_t* const row = rows.const_data_ptr<std::int64_t>();
  ListedPart part{{}, std::vector<std::int64_t>(static_cast<std::size_t>(shares_.members))};
  for (std::int64_t i = 0; i < rows.numel(); ++i) {
    POLYPHONY_CHECK((i == 0 || row[i - 1] < row[i]) && row[i] < shares_.rows,
                    "row " << row[i] << " of " << shares_.rows << " is out of order");
    ++part.counts[static_cast<std::size_t>(row[i] / shares_.share())];
  }
  const auto mine = part.counts.begin() + group_.index();
  part.rows = rows.narrow(0, std::accumulate(part.counts.begin(), mine, std::int64_t{0}), *mine)
                  .sub(begin());
  return part;
}

Tensor ListedRows::all(const Tensor& own) const { return all_beside(own, {}); }
Tensor ListedRows::own(const Tensor& all) const { return own_beside(all, {}); }
Tensor ListedRows::all_beside(const Tensor& own, const InnerGroup::BesideIt& beside) const {
  return group_.all_gather(own, counts_, beside);
}
Tensor ListedRows::own_beside(const Tensor& all, const InnerGroup::BesideIt& beside) const {
  return group_.reduce_scatter(all, counts_, beside);
}

Tensor MergedRows::all(const Tensor& own) const {
  Tensor rows = source_.all(own);
  if (order_.defined()) rows = rows.index_select(0, order_);
  return rows.view({rows.size(0) / merged_, merged_ * rows.size(1)});
}

Tensor MergedRows::own(const Tensor& all) const {
  const Tensor rows = all.reshape({all.size(0) * merged_, all.size(1) / merged_});
  return source_.own(order_.defined() ? rows.index_select(0, inverse_) : rows);
}

Tensor WholeRows::own(const Tensor& all) const {
  if (group_.size() == 1) return all;
  Tensor sum = all.clone(at::MemoryFormat::Contiguous);
  group_.all_reduce(sum);
  return sum;
}

Tensor own_rows(const std::shared_ptr<const RowExchange>& rows, const Tensor& all) {
  return MoveRows::apply(all, false, c10::make_intrusive<RowsCall>(rows));
}
Tensor all_rows(const std::shared_ptr<const RowExchange>& rows, const Tensor& own) {
  return MoveRows::apply(own, true, c10::make_intrusive<RowsCall>(rows));
}

Tensor select_rows(const Tensor& x, const Tensor& rows) { return SelectRows::apply(x, rows); }
Tensor place_rows(const Tensor& x, const Tensor& places, std::int64_t rows) {
  return PlaceRows::apply(x, places, rows);
}

}  // namespace polyphony::exec
