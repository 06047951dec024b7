// Sequence parallelism inside a chunk. Each tensor-parallel rank has its own rows of a microbatch
// (shared/work/row_shares.h): norms, residual sums, and biases after a row-parallel GEMM run on
// these only. The GEMMs, and the attention between them, run on all rows.
//   all   before a column-parallel GEMM: own rows -> the rows of all ranks, in order
//   own   after a row-parallel GEMM: a partial sum over all rows -> the sum over ranks, for own
//         rows only
//
// Each is the transpose of the other, so the backward pass of one is the other. A layer saves only
// its own rows for its weight gradient, and gathers them again. Ranks exchange parts of equal size,
// padded with zero rows, which are dropped after the exchange.
// Source: Korthikanti et al., arXiv 2205.05198, §4.2.2 (g and its conjugate).
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "exec/autograd/inner_groups.h"
#include "shared/work/row_shares.h"

namespace polyphony::exec {

class RowExchange {
 public:
  virtual ~RowExchange() = default;
  virtual torch::Tensor all(const torch::Tensor& own) const = 0;
  virtual torch::Tensor own(const torch::Tensor& all) const = 0;
  // The same, overlapped with `beside` (may be empty). This base version runs `beside` afterwards;
  // classes that need no further step after their collective override it (InnerGroup).
  virtual torch::Tensor own_beside(const torch::Tensor& all,
                                   const InnerGroup::BesideIt& beside) const {
    torch::Tensor sum = own(all);
    if (beside) beside();
    return sum;
  }
  virtual torch::Tensor all_beside(const torch::Tensor& own,
                                   const InnerGroup::BesideIt& beside) const {
    torch::Tensor rows = all(own);
    if (beside) beside();
    return rows;
  }
};

struct ListedPart {
  torch::Tensor rows;
  std::vector<std::int64_t> counts;
};

// Each rank has one run of consecutive rows of the axis, as equal as possible (RowShares).
class SequenceRows : public RowExchange {
 public:
  SequenceRows(InnerGroup& group, std::int64_t rows) : group_(group), shares_{rows, group.size()} {}
  torch::Tensor all(const torch::Tensor& own) const override;
  torch::Tensor own(const torch::Tensor& all) const override;
  torch::Tensor all_beside(const torch::Tensor& own,
                           const InnerGroup::BesideIt& beside) const override;
  torch::Tensor own_beside(const torch::Tensor& all,
                           const InnerGroup::BesideIt& beside) const override;

  std::int64_t rows() const { return shares_.rows; }
  std::int64_t begin() const { return shares_.begin(group_.index()); }
  std::int64_t count() const { return shares_.count(group_.index()); }
  // Returns this rank's part of `whole`, which has one entry for each row of the axis.
  torch::Tensor part(const torch::Tensor& whole) const;
  // Given indices of some `rows` of the axis, ascending and on the host, returns those of this
  // rank, relative to its first row, and how many each rank has.
  ListedPart listed(const torch::Tensor& rows) const;

 private:
  std::vector<std::int64_t> parts() const;
  InnerGroup& group_;
  RowShares shares_;
};

// Each rank has any number of rows; they are exchanged without padding.
class ListedRows : public RowExchange {
 public:
  ListedRows(InnerGroup& group, std::vector<std::int64_t> counts)
      : group_(group), counts_(std::move(counts)) {}
  torch::Tensor all(const torch::Tensor& own) const override;
  torch::Tensor own(const torch::Tensor& all) const override;
  torch::Tensor all_beside(const torch::Tensor& own,
                           const InnerGroup::BesideIt& beside) const override;
  torch::Tensor own_beside(const torch::Tensor& all,
                           const InnerGroup::BesideIt& beside) const override;

 private:
  InnerGroup& group_;
  std::vector<std::int64_t> counts_;
};

// The rows of `source`, reordered, and then concatenated in groups of `merged` rows: [R, W] ->
// [R/merged, merged·W]. `inverse` is the inverse of `order`; both undefined: rows keep their order.
class MergedRows : public RowExchange {
 public:
  MergedRows(SequenceRows source, torch::Tensor order, torch::Tensor inverse, std::int64_t merged)
      : source_(source), order_(std::move(order)), inverse_(std::move(inverse)), merged_(merged) {}
  torch::Tensor all(const torch::Tensor& own) const override;
  torch::Tensor own(const torch::Tensor& all) const override;

 private:
  SequenceRows source_;
  torch::Tensor order_, inverse_;
  std::int64_t merged_;
};

// Every rank has all rows, and computes features of its own from them: the forward pass exchanges
// nothing, and the backward pass sums the gradients of all ranks.
class WholeRows : public RowExchange {
 public:
  explicit WholeRows(InnerGroup& group) : group_(group) {}
  torch::Tensor all(const torch::Tensor& own) const override { return own; }
  torch::Tensor own(const torch::Tensor& all) const override;

 private:
  InnerGroup& group_;
};

// Returns x followed by zero rows, `rows` in all; and the first `rows` rows of x.
torch::Tensor padded_to(const torch::Tensor& x, std::int64_t rows);
torch::Tensor first_rows(const torch::Tensor& x, std::int64_t rows);

// own() and all() as nodes of the autograd graph; the backward pass of each is the other.
torch::Tensor own_rows(const std::shared_ptr<const RowExchange>& rows, const torch::Tensor& all);
torch::Tensor all_rows(const std::shared_ptr<const RowExchange>& rows, const torch::Tensor& own);
// Returns x[rows]; the entries of `rows` must be distinct.
torch::Tensor select_rows(const torch::Tensor& x, const torch::Tensor& rows);
// Returns a tensor [rows, W] that has the rows of x at `places`, and is zero elsewhere (the
// transpose of select_rows()).
torch::Tensor place_rows(const torch::Tensor& x, const torch::Tensor& places, std::int64_t rows);

}  // namespace polyphony::exec
