#include "exec/autograd/pieced_product.h"

#include <utility>

#include "shared/error.h"

namespace polyphony::exec {

using torch::Tensor;

void multiply(Tensor out, const Tensor& x, const Tensor& matrix, bool add) {
  if (out.size(0) == 1) {
    Tensor rows = out.select(0, 0);
    if (add)
      rows.addmm_(x.select(0, 0), matrix);
    else
      at::mm_out(rows, x.select(0, 0), matrix);
    return;
  }
  const Tensor each = matrix.unsqueeze(0).expand({out.size(0), -1, -1});
  if (add)
    out.baddbmm_(x, each);
  else
    at::bmm_out(out, x, each);
}

// Returns the block of the members whose shares have all rows of the chunk; then that of the
// member, if any, that has some of them.
std::vector<RowBlock> PiecedProduct::blocks(int piece) const {
  const std::int64_t each = pieces_.each(piece), begin = pieces_.begin(piece);
  std::vector<RowBlock> found;
  if (each == 0) return found;
  const int full = pieces_.full(piece);
  if (full > 0) found.push_back({0, full, begin, each});
  if (pieces_.rest(piece) > 0) found.push_back({full, 1, begin, pieces_.rest(piece)});
  return found;
}

Tensor PiecedProduct::of_all(const Tensor& all, const RowBlock& block) const {
  const std::int64_t row = all.stride(0);
  const std::int64_t first = block.member * pieces_.shares.share() + block.begin;
  return all.as_strided({block.members, block.rows, all.size(1)},
                        {pieces_.shares.share() * row, row, all.stride(1)},
                        all.storage_offset() + first * row);
}

// Returns the block's part of a buffer [members, rows of a chunk, W].
Tensor PiecedProduct::of_piece(const Tensor& buffer, const RowBlock& block) const {
  return buffer.narrow(0, block.member, block.members).narrow(1, 0, block.rows);
}

// Computes one chunk: in its final place if rows are not shared, else in a buffer, where rows that
// no member has are zero.
Tensor PiecedProduct::product(const std::vector<Term>& terms, int piece,
                              const Tensor& result) const {
  const std::int64_t each = pieces_.each(piece), members = pieces_.shares.members;
  Tensor buffer;
  if (!shared_)
    buffer = result.narrow(0, pieces_.begin(piece), each).unsqueeze(0);
  else if (pieces_.full(piece) == members)
    buffer = at::empty({members, each, result.size(1)}, result.options());
  else
    buffer = at::zeros({members, each, result.size(1)}, result.options());
  for (const RowBlock& block : blocks(piece))
    for (std::size_t i = 0; i < terms.size(); ++i)
      multiply(of_piece(buffer, block), of_all(terms[i].x, block), terms[i].matrix, i > 0);
  return buffer;
}

Tensor PiecedProduct::summed(const std::vector<Term>& terms,
                             const InnerGroup::BesideIt& beside) const {
  const std::int64_t rows = pieces_.shares.share(), width = terms[0].matrix.size(1);
  POLYPHONY_CHECK(terms[0].x.size(0) == pieces_.shares.rows,
                  terms[0].x.size(0) << " rows of " << pieces_.shares.rows);
  const Tensor result = at::empty({rows, width}, terms[0].x.options());
  Tensor piece = product(terms, 0, result), next;
  for (int i = 0; i < pieces_.count(); ++i) {
    InnerGroup::BesideIt meanwhile = beside;
    if (i + 1 < pieces_.count()) meanwhile = [&, i] { next = product(terms, i + 1, result); };
    if (shared_) {
      Tensor mine = result.narrow(0, pieces_.begin(i), pieces_.each(i));
      group_.reduce_scatter_into(piece, mine, meanwhile);
    } else {
      group_.all_reduce(piece, Reduction::sum, meanwhile);
    }
    piece = std::move(next);
  }
  return shared_ ? first_rows(result, pieces_.shares.count(group_.index())) : result;
}

void PiecedProduct::gathered(const Tensor& own, const Arrived& arrived) const {
  POLYPHONY_CHECK(shared_ && own.size(0) == pieces_.shares.count(group_.index()),
                  own.size(0) << " own rows of " << pieces_.shares.rows);
  const Tensor mine = padded_to(own, pieces_.shares.share());
  const auto bring = [&](int piece, const InnerGroup::BesideIt& beside) {
    const Tensor part = mine.narrow(0, pieces_.begin(piece), pieces_.each(piece)).contiguous();
    Tensor all =
        at::empty({pieces_.shares.members, pieces_.each(piece), own.size(1)}, own.options());
    group_.all_gather_into(part, all, beside);
    return all;
  };
  Tensor here = bring(0, {});
  for (int i = 0; i < pieces_.count(); ++i) {
    const auto use = [&, i] {
      for (const RowBlock& block : blocks(i)) arrived(block, of_piece(here, block));
    };
    if (i + 1 == pieces_.count()) return use();
    here = bring(i + 1, use);
  }
}

}  // namespace polyphony::exec
