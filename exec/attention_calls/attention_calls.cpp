#include "exec/attention_calls/attention_calls.h"

#include <algorithm>
#include <limits>

namespace polyphony::exec {

using torch::Tensor;

namespace {

constexpr double kHidden = -std::numeric_limits<double>::infinity();

// An interval of the mask's axis, and the tensor row where it begins.
struct Placed {
  Interval axis;
  std::int64_t first = 0;  // tensor row
};
std::vector<Placed> placed(const std::vector<Interval>& intervals) {
  std::vector<Placed> all;
  std::int64_t row = 0;
  for (const Interval& interval : intervals) {
    all.push_back({interval, row});
    row += interval.size();
  }
  return all;
}
Interval rows_of(const Placed& place, Interval axis) {
  const std::int64_t shift = place.first - place.axis.begin;
  return {axis.begin + shift, axis.end + shift};
}

// Intersects the rectangles with the queries and keys, and splits each by `parts`.
template <class Parts>
std::vector<AttentionCall> planned(const std::vector<Rectangle>& rectangles,
                                   const std::vector<Interval>& queries,
                                   const std::vector<Interval>& keys, Parts parts) {
  std::vector<AttentionCall> calls;
  const std::vector<Placed> key_places = placed(keys);
  for (const Placed& query : placed(queries))
    for (const Rectangle& rectangle : rectangles) {
      if (rectangle.queries.end <= query.axis.begin) continue;
      if (rectangle.queries.begin >= query.axis.end) break;
      for (const Placed& key : key_places)
        for (const Rectangle& part : parts(cut(rectangle, query.axis, key.axis))) {
          const std::int64_t apart = part.keys.begin - part.queries.begin;
          calls.push_back({rows_of(query, part.queries), rows_of(key, part.keys), filling(part),
                           part.least - apart, part.most - apart});
        }
    }
  return calls;
}

std::vector<Rectangle> bands(const Rectangle& r) {
  const Rectangle full = full_rectangle(r.queries, r.keys);
  if (filling(r) == Filling::none) return {};
  // Queries before `apart` attend to all keys; later ones attend to fewer and fewer.
  const std::int64_t apart = r.keys.begin - r.least + 1;
  if (r.least <= full.least || r.most < full.most || r.queries.size() <= r.keys.size() + 1)
    return {r};
  return {cut(r, {r.queries.begin, apart}, r.keys), cut(r, {apart, r.queries.end}, r.keys)};
}

}  // namespace

std::vector<AttentionCall> plan_calls(const std::vector<Rectangle>& rectangles,
                                      const std::vector<Interval>& queries,
                                      const std::vector<Interval>& keys) {
  return planned(rectangles, queries, keys, kernel_rectangles);
}

std::vector<AttentionCall> plan_bands(const std::vector<Rectangle>& rectangles,
                                      const std::vector<Interval>& queries,
                                      const std::vector<Interval>& keys) {
  return planned(rectangles, queries, keys, bands);
}

std::vector<AttentionCall> plan_calls(std::int64_t length, bool causal, std::int64_t window,
                                      std::int64_t row_split) {
  TokenMask mask;
  mask.add(length, 0, causal, {0, 1});
  return plan_calls(rectangles(mask, window), {{0, length}}, key_pieces(length, row_split));
}

std::vector<Interval> key_pieces(std::int64_t tokens, std::int64_t row_split) {
  const std::int64_t step = row_split > 0 ? row_split : tokens;
  std::vector<Interval> pieces;
  for (std::int64_t first = 0; first < tokens; first += step)
    pieces.push_back({first, std::min(first + step, tokens)});
  return pieces;
}

Tensor bitmap(const AttentionCall& call, const torch::TensorOptions& format) {
  const std::int64_t rows = call.queries.size(), keys = call.keys.size();
  const Tensor all = at::zeros({rows, keys}, format);
  if (call.filling == Filling::full) return all;
  const bool causal = call.filling == Filling::causal;
  const auto whole = format.dtype(torch::kInt64);
  const Tensor behind = at::arange(keys, whole).unsqueeze(0) - at::arange(rows, whole).unsqueeze(1);
  return at::masked_fill(
      all, behind.lt(causal ? -rows : call.least).logical_or_(behind.gt(causal ? 0 : call.most)),
      kHidden);
}

}  // namespace polyphony::exec
