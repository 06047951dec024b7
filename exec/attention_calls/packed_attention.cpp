// Attention of heads on devices (exec/attention_calls/heads_attention.h): each call covers many
// rectangles; the results of a query that is in several calls are combined.
#include <algorithm>
#include <limits>

#include "exec/attention_calls/attention_kernel.h"
#include "exec/attention_calls/heads_attention.h"
#include "exec/autograd/wide_gradient.h"

namespace polyphony::exec {

using torch::Tensor;

namespace {

// [N, g, T, W] <-> [T, N·g, W]; [N, g, T] <-> [N·g, T].
Tensor to_rows(const Tensor& heads) { return heads.flatten(0, 1).transpose(0, 1); }
Tensor to_heads(const Tensor& rows, const Tensor& queries) {
  return rows.unflatten(1, {queries.size(0), -1}).permute({1, 2, 0, 3});
}
Tensor sums_to_heads(const Tensor& sums, const Tensor& queries) {
  return sums.unflatten(0, {queries.size(0), queries.size(1)});
}

PackedHeads to_rows(const HeadTensors& heads) {
  return {to_rows(heads.queries), to_rows(heads.keys), to_rows(heads.values)};
}
PackedHeads part(const PackedHeads& rows, const PackedCall& call) {
  return {call.queries.of(rows.queries), call.keys.of(rows.keys), call.keys.of(rows.values)};
}
// Selects columns of [heads, T].
Tensor part(const Tensor& sums, const PackedRows& rows) {
  return rows.some.defined() ? sums.index_select(1, rows.some)
                             : sums.narrow(1, rows.interval.begin, rows.interval.size());
}

// Returns true if one call has all queries and keys.
bool is_whole(const std::vector<PackedCall>& calls, const HeadTensors& heads) {
  return calls.size() == 1 && calls[0].queries.are(heads.queries.size(2)) &&
         calls[0].keys.are(heads.keys.size(2));
}

void put(const Tensor& all, const PackedRows& rows, std::int64_t dimension, const Tensor& more) {
  if (rows.some.defined())
    all.index_copy_(dimension, rows.some, more.to(all.scalar_type()));
  else
    all.narrow(dimension, rows.interval.begin, rows.interval.size()).copy_(more);
}
void add(const Tensor& all, const PackedRows& rows, const Tensor& more) {
  if (rows.some.defined())
    all.index_add_(0, rows.some, more.to(all.scalar_type()));
  else
    all.narrow(0, rows.interval.begin, rows.interval.size()).add_(more);
}

}  // namespace

Attended attend(const HeadTensors& heads, const std::vector<PackedCall>& calls) {
  const Tensor& queries = heads.queries;
  const PackedHeads rows = to_rows(heads);
  if (is_whole(calls, heads)) {
    const PackedOut made = attend_call(rows, calls[0]);
    return {to_heads(made.out, queries), sums_to_heads(made.sums, queries)};
  }
  const bool joins =
      std::any_of(calls.begin(), calls.end(), [](const PackedCall& call) { return !call.fresh; });
  const auto wide = queries.options().dtype(gradient_type(queries.scalar_type()));
  const Tensor out = at::zeros({rows.queries.size(0), rows.queries.size(1), rows.values.size(2)},
                               joins ? wide : queries.options());
  const Tensor sums = at::full({rows.queries.size(1), rows.queries.size(0)},
                               -std::numeric_limits<double>::infinity(), wide);
  for (const PackedCall& call : calls) {
    PackedOut more = attend_call(part(rows, call), call);
    if (!call.fresh) {
      const Attended before{call.queries.of(out).transpose(0, 1), part(sums, call.queries)};
      join(before, {more.out.transpose(0, 1), more.sums});
      if (!call.queries.some.defined()) continue;
      more = {before.out.transpose(0, 1), before.sums};
    }
    put(out, call.queries, 0, more.out);
    put(sums, call.queries, 1, more.sums);
  }
  return {to_heads(out.to(queries.scalar_type()), queries), sums_to_heads(sums, queries)};
}

HeadTensors attend_backward(const Tensor& dy, const HeadTensors& heads, const Attended& attended,
                            const std::vector<PackedCall>& calls) {
  const PackedHeads rows = to_rows(heads);
  const Tensor d_out = to_rows(dy), out = to_rows(attended.out), sums = attended.sums.flatten(0, 1);
  const auto as_heads = [&](const PackedHeads& d) -> HeadTensors {
    return {to_heads(d.queries, heads.queries), to_heads(d.keys, heads.keys),
            to_heads(d.values, heads.values)};
  };
  if (is_whole(calls, heads))
    return as_heads(attend_call_backward(d_out, rows, {out, sums}, calls[0]));
  const auto wide = gradient_type(heads.queries.scalar_type());
  const auto zeros = [&](const Tensor& x) { return at::zeros(x.sizes(), x.options().dtype(wide)); };
  const PackedHeads all{zeros(rows.queries), zeros(rows.keys), zeros(rows.values)};
  for (const PackedCall& call : calls) {
    const PackedHeads more =
        attend_call_backward(call.queries.of(d_out), part(rows, call),
                             {call.queries.of(out), part(sums, call.queries)}, call);
    add(all.queries, call.queries, more.queries);
    add(all.keys, call.keys, more.keys);
    add(all.values, call.keys, more.values);
  }
  const auto plain = heads.queries.scalar_type();
  return as_heads({all.queries.to(plain), all.keys.to(plain), all.values.to(plain)});
}

}  // namespace polyphony::exec
