// A tensor-parallel GEMM and its collective, computed in chunks of rows (shared/work/row_pieces.h;
// ModuleLayout::tp_pieces): the collective of one chunk overlaps with the GEMM of the next, on a
// stream of the group or, on CPUs, on a second thread (exec/autograd/inner_groups.h).
//
// Under sequence parallelism a chunk has the same number of rows of every rank's share. These are
// gathered into, or scattered from, a buffer of their own; two such buffers exist at a time in
// place of one for all rows. GEMMs read and write the full tensors in place, as a batch with one
// matrix.
//
// Rows are independent, and the sums over ranks add the same values. So chunks give the same result
// as the whole, except for the order in which a library sums inside GEMMs of different sizes.
#pragma once

#include <functional>
#include <vector>

#include "exec/autograd/sequence_rows.h"
#include "shared/work/row_pieces.h"

namespace polyphony::exec {

// The `rows` rows from `begin` on in the shares of `members` members, from `member` on.
struct RowBlock {
  std::int64_t member = 0, members = 0, begin = 0, rows = 0;
};

// The product x·matrix, x [R, in].
struct Term {
  torch::Tensor x, matrix;
};

// Sets `out` [members, rows, out] to x·matrix, or adds it; x is [members, rows, in].
void multiply(torch::Tensor out, const torch::Tensor& x, const torch::Tensor& matrix,
              bool add = false);

class PiecedProduct {
 public:
  // `rows`: number of all rows. `shared`: each rank has only its own share of them.
  PiecedProduct(InnerGroup& group, std::int64_t rows, bool shared, int pieces)
      : group_(group), shared_(shared), pieces_{{rows, shared ? group.size() : 1}, pieces} {}

  std::int64_t rows() const { return pieces_.shares.rows; }

  // Returns the sum of the terms over all ranks: this rank's own rows if rows are shared, else all
  // rows. `beside`: work that a device overlaps with the last collective.
  torch::Tensor summed(const std::vector<Term>& terms,
                       const InnerGroup::BesideIt& beside = {}) const;
  // Gathers own rows, chunk by chunk, and calls `arrived` for every block of the rows of all ranks.
  using Arrived = std::function<void(const RowBlock& block, const torch::Tensor& rows)>;
  void gathered(const torch::Tensor& own, const Arrived& arrived) const;
  // Returns the block's rows of `all` [R, W], as a view [members, rows, W].
  torch::Tensor of_all(const torch::Tensor& all, const RowBlock& block) const;

 private:
  std::vector<RowBlock> blocks(int piece) const;
  torch::Tensor of_piece(const torch::Tensor& buffer, const RowBlock& block) const;
  torch::Tensor product(const std::vector<Term>& terms, int piece,
                        const torch::Tensor& result) const;

  InnerGroup& group_;
  bool shared_;
  RowPieces pieces_;
};

}  // namespace polyphony::exec
