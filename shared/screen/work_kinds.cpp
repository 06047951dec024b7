#include "shared/screen/work_kinds.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace polyphony {
namespace {

constexpr std::size_t kDistinct = 24;  // most kinds of works

template <class Function>
WorkSize combine(const WorkSize& a, const WorkSize& b, Function function) {
  return {function(a.tokens, b.tokens),
          function(a.pairs, b.pairs),
          function(a.text_tokens, b.text_tokens),
          function(a.loss_tokens, b.loss_tokens),
          static_cast<std::int32_t>(function(a.sequences, b.sequences)),
          static_cast<std::int32_t>(function(a.samples, b.samples)),
          function(a.gathered, b.gathered),
          function(a.condition, b.condition),
          function(a.cross_pairs, b.cross_pairs),
          function(a.window_pairs, b.window_pairs),
          function(a.gathered_pairs, b.gathered_pairs),
          function(a.gathered_window_pairs, b.gathered_window_pairs)};
}

}  // namespace

WorkSize least(const WorkSize& a, const WorkSize& b) {
  return combine(a, b, [](std::int64_t x, std::int64_t y) { return std::min(x, y); });
}
WorkSize plus(const WorkSize& a, const WorkSize& b) {
  return combine(a, b, [](std::int64_t x, std::int64_t y) { return x + y; });
}
WorkSize minus(const WorkSize& a, const WorkSize& b) {
  return combine(a, b, [](std::int64_t x, std::int64_t y) { return x - y; });
}

WorkKinds find_kinds(const std::vector<Sizes>& works) {
  std::vector<std::size_t> order(works.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto tokens = [&](std::size_t w) {
    std::int64_t sum = 0;
    for (const WorkSize& size : works[w]) sum += size.tokens;
    return sum;
  };
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(tokens(a), works[a]) < std::pair(tokens(b), works[b]);
  });
  std::size_t distinct = 1;
  for (std::size_t i = 1; i < order.size(); ++i) distinct += works[order[i]] != works[order[i - 1]];
  const std::size_t group = distinct <= kDistinct ? 1 : (works.size() + kDistinct - 1) / kDistinct;
  WorkKinds kinds;
  kinds.kind_of.resize(works.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Sizes& work = works[order[i]];
    if (group == 1 ? i == 0 || work != works[order[i - 1]] : i % group == 0) {
      kinds.sizes.push_back(work);
      kinds.counts.push_back(0);
    }
    for (std::size_t m = 0; m < work.size(); ++m)
      kinds.sizes.back()[m] = least(kinds.sizes.back()[m], work[m]);
    ++kinds.counts.back();
    kinds.kind_of[order[i]] = static_cast<std::uint16_t>(kinds.counts.size() - 1);
  }
  return kinds;
}

}  // namespace polyphony
