#include "exec/mixers/causal_convolution.h"

#include "exec/attention/head_rows.h"
#include "exec/autograd/wide_gradient.h"

namespace polyphony::exec {

using torch::Tensor;
using Bucket = SequencePlan::Bucket;

Tensor causal_convolution(const Tensor& x, const Tensor& weights) {
  const std::int64_t taps = weights.size(1), length = x.size(1);
  const Tensor padded = at::constant_pad_nd(x, {0, 0, taps - 1, 0});
  Tensor sum = padded.narrow(1, 0, length) * weights.select(1, 0);
  for (std::int64_t t = 1; t < taps; ++t)
    sum = at::addcmul(sum, padded.narrow(1, t, length), weights.select(1, t));
  return sum;
}

Tensor by_sample(const Tensor& rows, const SequencePlan& sequences,
                 const std::function<Tensor(const Tensor&)>& part) {
  const SequencePlan& plan = sequences.side_by_side ? *sequences.side_by_side : sequences;
  const bool moves = plan.order.defined();
  const Tensor ordered = widened(moves ? permute_rows(rows, plan.order, plan.inverse) : rows);
  std::vector<Tensor> outs;
  std::int64_t first = 0;
  for (const Bucket& bucket : plan.buckets) {
    const Tensor padded = pad_rows(ordered.narrow(0, first, bucket.rows), bucket);
    const Tensor out = part(padded.view({bucket.count, bucket.longest, -1}));
    outs.push_back(unpad_rows(out.flatten(0, 1), bucket));
    first += bucket.rows;
  }
  const Tensor all = (outs.size() == 1 ? outs[0] : at::cat(outs)).to(rows.scalar_type());
  return moves ? permute_rows(all, plan.inverse, plan.order) : all;
}

}  // namespace polyphony::exec
