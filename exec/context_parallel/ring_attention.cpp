#include "exec/context_parallel/ring_attention.h"

#include <numeric>

#include "exec/autograd/beside.h"
#include "exec/autograd/wide_gradient.h"

namespace polyphony::exec {

using torch::Tensor;

namespace {

// The block that this rank currently has (first its own), and the rows of the block that it
// receives next.
struct HeldBlock {
  const AttentionCalls& calls;
  std::int64_t rows, next;
  bool first, last;
};
template <class Use>
void each_block(const KeyRing& ring, Use use) {
  const int ranks = ring.group.size();
  for (int step = 0; step < ranks; ++step) {
    const auto at = [&](int behind) {
      return static_cast<std::size_t>((ring.group.index() + ranks - behind) % ranks);
    };
    use(HeldBlock{ring.calls[at(step)], ring.counts[at(step)], ring.counts[at((step + 1) % ranks)],
                  step == 0, step + 1 == ranks});
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
  const auto by_row = [](const Tensor& x) { return x.squeeze(1).transpose(0, 1); };  // [G, K, D]
  return at::stack({by_row(gradients.keys), by_row(gradients.values)}, 1).flatten(1);
}

Attended attend_round(const KeyRing& ring, const Tensor& queries, const Tensor& keys,
                      const HeadShape& heads) {
  Attended all;
  Tensor held = keys;
  each_block(ring, [&](const HeldBlock& block) {
    Tensor next;
    std::vector<Move> moves;
    if (!block.last)
      moves.emplace_back(
          [&](const auto& work) { next = ring.group.pass_on(held, block.next, work); });
    beside(queries.device(), moves, [&] {
      const Attended more = attend(with_keys(queries, held, heads), block.calls);
      if (all.out.defined())
        join(all, more);
      else
        all = {more.out.to(more.sums.scalar_type()), more.sums};
    });
    held = next;
  });
  ring.group.note_round(keys, gathered(ring));
  return {all.out.to(queries.scalar_type()), all.sums};
}

RoundGradients attend_round_backward(const KeyRing& ring, const Tensor& dy, const Tensor& queries,
                                     const Tensor& keys, const Attended& attended,
                                     const HeadShape& heads) {
  const auto wide = gradient_type(queries.scalar_type());
  Tensor d_queries = at::zeros_like(queries, queries.options().dtype(wide)), held = keys, own, sum;
  each_block(ring, [&](const HeldBlock& block) {
    Tensor next, before, here;
    std::vector<Move> moves;
    if (!block.last)
      moves.emplace_back(
          [&](const auto& work) { next = ring.group.pass_on(held, block.next, work); });
    if (sum.defined())
      moves.emplace_back(
          [&](const auto& work) { before = ring.group.pass_on(sum, block.rows, work); });
    beside(queries.device(), moves, [&] {
      const HeadTensors d =
          attend_backward(dy, with_keys(queries, held, heads), attended, block.calls);
      d_queries.add_(d.queries);
      here = key_rows(d).to(wide);
    });
    if (block.first)
      own = here;
    else
      sum = before.defined() ? before.add_(here) : here;
    held = next;
  });
  if (sum.defined()) own.add_(ring.group.pass_on(sum, own.size(0)));
  ring.group.note_round(keys, gathered(ring));
  ring.group.note_round(own, gathered(ring));
  return {d_queries.to(queries.scalar_type()), own.to(keys.scalar_type())};
}

}  // namespace polyphony::exec
