// Sequence parallelism inside a chunk. Between blocks each tensor-parallel rank has its own rows of
// a work item (shared/work/row_shares.h): norms, residual sums and biases after a row-parallel
// product see only these. The products themselves, and attention between them, see all rows.
//   all   own rows -> those of all ranks, in order: before a column-parallel product
//   own   a partial sum over all rows -> the sum over ranks, of the own rows: after a row-parallel
//         one
// Each is the other's transpose, so the backward of one is the other. Own rows are what a layer
// keeps for its weight gradient: it gathers them again. Parts of equal size move between ranks,
// padded with zero rows; the padding ends there.
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
  // With what a device does meanwhile, if anything, where nothing else is to be done with what comes (InnerGroup).
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

// Runs of the axis, as equal as RowShares says.
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
  // This rank's part of something with one entry for each row of the axis.
  torch::Tensor part(const torch::Tensor& whole) const;
  // Of `rows` of the axis, in increasing order and of the host: this rank's, counted from its first;
  // and how many each rank has.
  ListedPart listed(const torch::Tensor& rows) const;

 private:
  std::vector<std::int64_t> parts() const;
  InnerGroup& group_;
  RowShares shares_;
};

// Any number of rows on each rank, unpadded.
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

// Rows of `source`, brought into another order and then `merged` at a time side by side:
// [R, W] -> [R/merged, merged·W]. `inverse` undoes `order`; undefined: they are in order.
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

// Every rank has every row, and reads them for features of its own: nothing moves forward, and the
// gradients of all ranks are summed.
class WholeRows : public RowExchange {
 public:
  explicit WholeRows(InnerGroup& group) : group_(group) {}
  torch::Tensor all(const torch::Tensor& own) const override { return own; }
  torch::Tensor own(const torch::Tensor& all) const override;

 private:
  InnerGroup& group_;
};

// x followed by zero rows; the first of them.
torch::Tensor padded_to(const torch::Tensor& x, std::int64_t rows);
torch::Tensor first_rows(const torch::Tensor& x, std::int64_t rows);

// own() and all() as nodes of the graph; the backward of one is the other.
torch::Tensor own_rows(const std::shared_ptr<const RowExchange>& rows, const torch::Tensor& all);
torch::Tensor all_rows(const std::shared_ptr<const RowExchange>& rows, const torch::Tensor& own);
// x[rows], distinct ones.
torch::Tensor select_rows(const torch::Tensor& x, const torch::Tensor& rows);
// Its transpose: [rows, W], zero but for x at `places`.
torch::Tensor place_rows(const torch::Tensor& x, const torch::Tensor& places, std::int64_t rows);

}  // namespace polyphony::exec
