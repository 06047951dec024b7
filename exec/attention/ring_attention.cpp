#include "exec/attention/ring_attention.h"

#include <numeric>

#include "exec/autograd/wide_gradient.h"

namespace polyphony::exec {

using torch::Tensor;

namespace {

// Calls use(calls, rows that come next) for the block of every rank, this one's first.
template <class Use>
void each_block(const KeyRing& ring, Use use) {
  const int ranks = ring.group.size();
  for (int step = 0; step < ranks; ++step) {
    const int from = (ring.group.index() - step + ranks) % ranks, next = (from - 1 + ranks) % ranks;
    use(ring.calls[static_cast<std::size_t>(from)], ring.counts[static_cast<std::size_t>(next)],
        step + 1 == ranks);
  }
}

std::int64_t gathered(const KeyRing& ring) {
  return std::accumulate(ring.counts.begin(), ring.counts.end(), std::int64_t{0});
}

}  // namespace

HeadTensors with_keys(const Tensor& queries, const Tensor& rows, const HeadShape& heads) {
  const Tensor both = rows.view({rows.size(0), 2, heads.kv_heads, 1, heads.width})
                          .permute({1, 2, 3, 0, 4});  // [2, K, 1, G, D]
  return {queries, both[0], both[1]};
}

Tensor key_rows(const HeadTensors& gradients) {
  const Tensor both = at::stack({gradients.keys, gradients.values});  // [2, K, 1, G, D]
  return both.permute({3, 0, 1, 2, 4}).reshape({both.size(3), 2 * both.size(1) * both.size(4)});
}

Attended attend_round(const KeyRing& ring, const Tensor& queries, const Tensor& keys,
                      const HeadShape& heads) {
  Attended all;
  Tensor held = keys;
  each_block(ring, [&](const AttentionCalls& calls, std::int64_t next, bool last) {
    const Attended more = attend(with_keys(queries, held, heads), calls);
    if (all.out.defined())
      join(all, more);
    else
      all = {more.out.to(more.sums.scalar_type()), more.sums};
    if (!last) held = ring.group.pass_on(held, next);
  });
  ring.group.note_round(keys, gathered(ring));
  return {all.out.to(queries.scalar_type()), all.sums};
}

RoundGradients attend_round_backward(const KeyRing& ring, const Tensor& dy, const Tensor& queries,
                                     const Tensor& keys, const Attended& attended,
                                     const HeadShape& heads) {
  const auto wide = gradient_type(queries.scalar_type());
  Tensor d_queries = at::zeros_like(queries, queries.options().dtype(wide)),
         d_held = at::zeros_like(keys, keys.options().dtype(wide)), held = keys;
  each_block(ring, [&](const AttentionCalls& calls, std::int64_t next, bool last) {
    const HeadTensors d = attend_backward(dy, with_keys(queries, held, heads), attended, calls);
    d_queries.add_(d.queries);
    d_held.add_(key_rows(d));
    if (!last) held = ring.group.pass_on(held, next);
    d_held = ring.group.pass_on(d_held, next);
  });
  ring.group.note_round(keys, gathered(ring));
  ring.group.note_round(d_held, gathered(ring));
  return {d_queries.to(queries.scalar_type()), d_held.to(keys.scalar_type())};
}

}  // namespace polyphony::exec
