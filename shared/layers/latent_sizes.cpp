#include <algorithm>

#include "shared/layers/row_shares.h"
#include "shared/layers/sizes.h"

namespace polyphony {

// T tokens, q own rows, A heads, t ranks that share them, D plain and R rotated numbers of a query or
// key, V of a value; ranks Rq of queries (0: none) and Rk of keys and values:
//   e·(q·(Rk + R) + T·(Rk + R)) + w·q    what the joint down-projection made and its norm's
//                                        statistics; the latents of all rows, which stay gathered
//   e·(q·Rq + T·Rq) + w·q                of queries likewise; T·Rq is an input of a matrix
//   e·T·H                                without a query rank, where rows are gathered: likewise
//   e·T·A/t·((D + R) + (D + V))          queries, keys and values of the heads
// LoRA: e·r more of each matrix, of its rows.
std::int64_t latent_bytes(const Module& module, const WorkSize& size, const RankContext& context) {
  const std::int64_t element = size_of(context.precision).value;
  const std::int64_t wide = std::max<std::int64_t>(4, element);
  const std::int64_t tokens = size.tokens;
  const std::int64_t own =
      context.sp ? RowShares{tokens, context.tp}.count(context.tensor_index) : tokens;
  // Rows that came together keep their padding.
  const std::int64_t gathered = context.sp ? RowShares{tokens, context.tp}.padded() : tokens;
  const bool inputs =
      module.trainable != Trainable::frozen;  // of matrices, or of pairs beside them
  const std::int64_t latent = module.key_value_rank + module.rotary_dim;
  std::int64_t bytes = element * (own + gathered) * latent + wide * own;
  if (module.query_rank > 0)
    bytes += element * (own + (inputs ? gathered : 0)) * module.query_rank + wide * own;
  else if (context.sp && context.tp > 1 && inputs)
    bytes += element * gathered * module.hidden;
  const std::int64_t of_head = 2 * module.head_dim + module.rotary_dim + value_width(module);
  return bytes + element * tokens * (module.heads / context.tp) * of_head;
}

std::int64_t latent_pair_rows(const Module& module, const WorkSize& size,
                              const RankContext& context) {
  const std::int64_t own =
      context.sp ? RowShares{size.tokens, context.tp}.count(context.tensor_index) : size.tokens;
  return (module.query_rank > 0 ? 2 : 1) * own + 2 * size.tokens;
}

}  // namespace polyphony
