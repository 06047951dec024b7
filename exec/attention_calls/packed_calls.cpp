#include "exec/attention_calls/packed_calls.h"

#include <algorithm>
#include <array>
#include <optional>

#include "exec/on_device.h"

namespace polyphony::exec {

using torch::Tensor;

namespace {

// Collects the index lists of all calls, which are copied to the device as one tensor.
class Lists {
 public:
  Interval add(const std::vector<std::int64_t>& values) {
    const auto first = static_cast<std::int64_t>(all_.size());
    all_.insert(all_.end(), values.begin(), values.end());
    return {first, static_cast<std::int64_t>(all_.size())};
  }
  void copy_to(torch::Device device, torch::Dtype dtype) {
    made_ = on_device(torch::tensor(all_, torch::kInt64).to(dtype), device);
  }
  Tensor at(Interval list) const {
    return list.size() == 0 ? Tensor() : made_.narrow(0, list.begin, list.size());
  }

 private:
  std::vector<std::int64_t> all_;
  Tensor made_;
};

// One bound on the keys that a query attends to: the same for all rectangles, or wide enough for
// rectangles that need no bound.
struct Bound {
  std::optional<std::int64_t> exact;
  std::int64_t least = 0;

  bool takes(const Bound& more) const {
    if (exact && more.exact) return exact == more.exact;
    if (exact) return *exact >= more.least;
    return !more.exact || *more.exact >= least;
  }
  void take(const Bound& more) {
    if (more.exact) exact = more.exact;
    least = std::max(least, more.least);
  }
};

struct Bounds {
  Bound left, right;
};
Bounds bounds_of(const AttentionCall& part) {
  const std::int64_t n = part.queries.size(), m = part.keys.size(), diagonal = m - n;
  Bounds made;
  if (part.least > 1 - n)
    made.left.exact = diagonal - part.least;
  else
    made.left.least = m - 1;
  if (part.most < m - 1)
    made.right.exact = part.most - diagonal;
  else
    made.right.least = n - 1;
  return made;
}

struct Group {
  std::vector<AttentionCall> parts;  // in rows of the tensors
  Bounds bounds;

  bool takes(const AttentionCall& part, const Bounds& more) const {
    return parts.back().queries.end <= part.queries.begin &&
           parts.back().keys.end <= part.keys.begin && bounds.left.takes(more.left) &&
           bounds.right.takes(more.right);
  }
};

std::vector<Group> group(const std::vector<AttentionCall>& parts) {
  std::vector<Group> groups;
  for (const AttentionCall& part : parts) {
    const Bounds bounds = bounds_of(part);
    auto found = std::find_if(groups.begin(), groups.end(),
                              [&](const Group& one) { return one.takes(part, bounds); });
    if (found == groups.end()) {
      groups.push_back({{part}, bounds});
      continue;
    }
    found->parts.push_back(part);
    found->bounds.left.take(bounds.left);
    found->bounds.right.take(bounds.right);
  }
  return groups;
}

struct RowLists {
  Interval some, starts;
};

// Lists the rows of the parts' intervals, and renumbers the intervals from the first listed row on.
RowLists list_rows(std::vector<AttentionCall>& parts, Interval AttentionCall::* which,
                   PackedRows& rows, Lists& numbers, Lists& starts) {
  std::vector<std::int64_t> begins{0}, all;
  rows.interval = {(parts.front().*which).begin, (parts.back().*which).end};
  for (AttentionCall& part : parts) {
    Interval& own = part.*which;
    rows.longest = std::max(rows.longest, own.size());
    for (std::int64_t row = own.begin; row < own.end; ++row) all.push_back(row);
    own = {rows.count, rows.count + own.size()};
    rows.count = own.end;
    begins.push_back(rows.count);
  }
  return {rows.count < rows.interval.size() ? numbers.add(all) : Interval{}, starts.add(begins)};
}

std::size_t row_count(const std::vector<Interval>& intervals) {
  std::size_t rows = 0;
  for (const Interval& interval : intervals) rows += static_cast<std::size_t>(interval.size());
  return rows;
}

std::vector<std::int64_t> padded_rows(const PackedCall& call) {
  std::vector<std::int64_t> rows;
  for (std::size_t p = 0; p < call.parts.size(); ++p)
    for (std::int64_t i = 0; i < call.parts[p].queries.size(); ++i)
      rows.push_back(static_cast<std::int64_t>(p) * call.padded_length() + i);
  return rows;
}

}  // namespace

Tensor PackedRows::of(const Tensor& x) const {
  return some.defined() ? x.index_select(0, some) : x.narrow(0, interval.begin, interval.size());
}

std::vector<PackedCall> pack_calls(const std::vector<Rectangle>& rectangles,
                                   const std::vector<Interval>& queries,
                                   const std::vector<Interval>& keys, torch::Device device) {
  std::vector<PackedCall> calls;
  Lists numbers, starts;
  std::vector<std::array<RowLists, 2>> lists;
  std::vector<Interval> padded;
  std::vector<bool> seen(row_count(queries));  // queries that are in the calls so far
  for (Group& one : group(plan_bands(rectangles, queries, keys))) {
    PackedCall call;
    for (const AttentionCall& part : one.parts) {
      call.square &= part.queries.size() == part.keys.size();
      const auto first = seen.begin() + part.queries.begin, end = seen.begin() + part.queries.end;
      call.fresh &= std::find(first, end, true) == end;
      std::fill(first, end, true);
    }
    call.left = one.bounds.left.exact.value_or(-1);
    call.right = one.bounds.right.exact.value_or(-1);
    call.parts = std::move(one.parts);
    const RowLists of_queries =
        list_rows(call.parts, &AttentionCall::queries, call.queries, numbers, starts);
    const RowLists of_keys =
        list_rows(call.parts, &AttentionCall::keys, call.keys, numbers, starts);
    lists.push_back({of_queries, of_keys});
    padded.push_back(numbers.add(padded_rows(call)));
    calls.push_back(std::move(call));
  }
  if (calls.empty()) return calls;
  numbers.copy_to(device, torch::kInt64);
  starts.copy_to(device, torch::kInt32);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    calls[i].queries.some = numbers.at(lists[i][0].some);
    calls[i].queries.starts = starts.at(lists[i][0].starts);
    calls[i].keys.some = numbers.at(lists[i][1].some);
    calls[i].keys.starts = starts.at(lists[i][1].starts);
    calls[i].padded = numbers.at(padded[i]);
  }
  return calls;
}

AttentionCalls calls_for(const std::vector<Rectangle>& rectangles,
                         const std::vector<Interval>& queries, const std::vector<Interval>& keys,
                         torch::Device device) {
  if (device.is_cpu()) return {plan_calls(rectangles, queries, keys), {}};
  return {{}, pack_calls(rectangles, queries, keys, device)};
}

}  // namespace polyphony::exec
