// A tensor-parallel product and its collective in pieces of rows (shared/work/row_pieces.h): the collective
// of one runs while the next is computed, on a stream of the group's, or on CPUs on a second thread
// (exec/autograd/inner_groups.h). Under sequence parallelism a piece is as many rows of every rank's share: they
// are gathered into, or scattered from, a buffer of their own, two of which are there at a time in place of all
// rows; products read and write all rows where they lie, as a batch of one matrix.
// Rows do not see each other, and sums over ranks are of the same numbers: pieces give what the whole gives, but
// for how a library orders the sums inside products of other sizes.
#pragma once

#include <functional>
#include <vector>

#include "exec/autograd/sequence_rows.h"
#include "shared/work/row_pieces.h"

namespace polyphony::exec {

// As many rows from `begin` of each of some members' shares.
struct RowBlock {
  std::int64_t member = 0, members = 0, begin = 0, rows = 0;
};

// x·matrix, x [R, in].
struct Term {
  torch::Tensor x, matrix;
};

// out = x·matrix, or added to it: [members, rows, out] and [members, rows, in].
void multiply(torch::Tensor out, const torch::Tensor& x, const torch::Tensor& matrix,
              bool add = false);

class PiecedProduct {
 public:
  // Of all `rows`; `shared`: each rank has its own of them.
  PiecedProduct(InnerGroup& group, std::int64_t rows, bool shared, int pieces)
      : group_(group), shared_(shared), pieces_{{rows, shared ? group.size() : 1}, pieces} {}

  std::int64_t rows() const { return pieces_.shares.rows; }

  // The terms summed, and that over ranks: own rows where they are shared, else all. `beside`: what a device does
  // beside the last collective.
  torch::Tensor summed(const std::vector<Term>& terms,
                       const InnerGroup::BesideIt& beside = {}) const;
  // Own rows -> `arrived` is called for every block of all ranks' rows, piece by piece.
  using Arrived = std::function<void(const RowBlock& block, const torch::Tensor& rows)>;
  void gathered(const torch::Tensor& own, const Arrived& arrived) const;
  // [members, rows, W] of [R, W]: a view.
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
