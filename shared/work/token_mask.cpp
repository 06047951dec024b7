#include "shared/work/token_mask.h"

#include <algorithm>
#include <map>

#include "shared/error.h"

namespace polyphony {
namespace {

bool contains(Interval groups, int group) { return groups.begin <= group && group < groups.end; }

void join(std::vector<Interval>& list, Interval next) {
  if (!list.empty() && list.back().end == next.begin)
    list.back().end = next.end;
  else
    list.push_back(next);
}

// Σ over x < end of max(x, 0).
std::int64_t ramp(std::int64_t end) { return end > 0 ? end * (end - 1) / 2 : 0; }

// Counts pairs with k − q ≤ most. Query q attends to min(max(q + most + 1 − first key, 0), keys).
std::int64_t pairs_up_to(const Rectangle& r, std::int64_t most) {
  const auto beyond = [&](std::int64_t key) {
    return ramp(r.queries.end + most + 1 - key) - ramp(r.queries.begin + most + 1 - key);
  };
  return beyond(r.keys.begin) - beyond(r.keys.end);
}

// For each run, the earlier tokens of the groups that it attends to, merged where they touch. Runs
// must be requested in order: those with the same attended groups share one list, which grows, so
// each run is visited once per list.
class EarlierTokens {
 public:
  explicit EarlierTokens(const TokenMask& mask)
      : mask_(mask), first_(static_cast<std::size_t>(mask.groups), mask.runs.size()) {
    for (std::size_t r = mask.runs.size(); r-- > 0;)
      first_[static_cast<std::size_t>(mask.runs[r].group)] = r;
  }
  const std::vector<Interval>& of(std::size_t run) {
    const Interval groups = mask_.runs[run].attends;
    const auto [found, made] = seen_.try_emplace(groups);
    Seen& seen = found->second;
    if (made)
      seen.next = *std::min_element(first_.begin() + groups.begin, first_.begin() + groups.end);
    for (; seen.next < run; ++seen.next)
      if (contains(groups, mask_.runs[seen.next].group))
        join(seen.tokens, mask_.runs[seen.next].tokens);
    return seen.tokens;
  }

 private:
  struct Seen {
    std::size_t next = 0;
    std::vector<Interval> tokens;
  };
  const TokenMask& mask_;
  std::vector<std::size_t> first_;  // first run of each group
  std::map<Interval, Seen> seen_;   // keyed by the attended groups
};

}  // namespace

void TokenMask::add(std::int64_t count, int group, bool causal, Interval attends) {
  if (count == 0) return;
  POLYPHONY_CHECK(contains(attends, group), "group " << group << " does not attend to itself");
  groups = std::max(groups, static_cast<int>(attends.end));
  const MaskRun run{{tokens(), tokens() + count}, group, causal, attends};
  if (!runs.empty() && runs.back() == MaskRun{runs.back().tokens, group, causal, attends})
    runs.back().tokens.end = run.tokens.end;
  else
    runs.push_back(run);
}

Rectangle full_rectangle(Interval queries, Interval keys) {
  return {queries, keys, keys.begin - queries.end + 1, keys.end - 1 - queries.begin};
}

Filling filling(const Rectangle& r) {
  const Rectangle full = full_rectangle(r.queries, r.keys);
  if (r.queries.size() <= 0 || r.keys.size() <= 0 || r.most < full.least || r.least > full.most ||
      r.least > r.most)
    return Filling::none;
  const bool below = r.least <= full.least;
  if (below && r.most >= full.most) return Filling::full;
  return below && r.most == 0 && r.queries == r.keys ? Filling::causal : Filling::bitmap;
}

std::int64_t pairs(const Rectangle& r) {
  if (filling(r) == Filling::none) return 0;
  const Rectangle full = full_rectangle(r.queries, r.keys);
  return pairs_up_to(r, std::min(r.most, full.most)) -
         pairs_up_to(r, std::max(r.least, full.least) - 1);
}

Rectangle cut(const Rectangle& r, Interval queries, Interval keys) {
  Interval q{std::max(r.queries.begin, queries.begin), std::min(r.queries.end, queries.end)};
  Interval k{std::max(r.keys.begin, keys.begin), std::min(r.keys.end, keys.end)};
  k = {std::max(k.begin, q.begin + r.least), std::min(k.end, q.end + r.most)};
  q = {std::max(q.begin, k.begin - r.most), std::min(q.end, k.end - r.least)};
  if (q.size() <= 0 || k.size() <= 0) return {};
  const Rectangle full = full_rectangle(q, k);
  return {q, k, std::max(r.least, full.least), std::min(r.most, full.most)};
}

std::vector<Rectangle> rectangles(const TokenMask& mask, std::int64_t window) {
  std::vector<Rectangle> all;
  const auto add = [&](const MaskRun& run, Interval keys, bool causal) {
    Rectangle r = full_rectangle(run.tokens, keys);
    if (causal) r.most = 0;
    if (window > 0) {
      r.least = std::max(r.least, 1 - window);
      r.most = std::min(r.most, window - 1);
    }
    if (filling(r) != Filling::none) all.push_back(r);
  };
  std::vector<std::vector<std::size_t>> of_group(static_cast<std::size_t>(mask.groups));
  for (std::size_t r = 0; r < mask.runs.size(); ++r)
    of_group[static_cast<std::size_t>(mask.runs[r].group)].push_back(r);
  EarlierTokens earlier_tokens(mask);
  for (std::size_t r = 0; r < mask.runs.size(); ++r) {
    const MaskRun& run = mask.runs[r];
    const std::vector<Interval>& earlier = earlier_tokens.of(r);
    const bool touches = !earlier.empty() && earlier.back().end == run.tokens.begin;
    for (std::size_t i = 0; i + (touches ? 1 : 0) < earlier.size(); ++i)
      add(run, earlier[i], false);
    Interval keys = run.tokens;
    if (touches) keys.begin = earlier.back().begin;
    if (!run.causal) {
      const std::vector<std::size_t>& alike = of_group[static_cast<std::size_t>(run.group)];
      for (auto later = std::upper_bound(alike.begin(), alike.end(), r); later != alike.end();
           ++later) {
        const Interval next = mask.runs[*later].tokens;
        if (keys.end != next.begin) {
          add(run, keys, false);
          keys.begin = next.begin;
        }
        keys.end = next.end;
      }
    }
    add(run, keys, run.causal);
  }
  return all;
}

std::vector<Rectangle> kernel_rectangles(const Rectangle& whole) {
  const Rectangle r = cut(whole, whole.queries, whole.keys);
  const Rectangle full = full_rectangle(r.queries, r.keys);
  if (filling(r) != Filling::bitmap) {
    if (filling(r) == Filling::none) return {};
    return {r};
  }
  std::vector<Rectangle> parts;
  const auto add = [&](Interval queries, Interval keys) {
    const std::vector<Rectangle> more = kernel_rectangles(cut(r, queries, keys));
    parts.insert(parts.end(), more.begin(), more.end());
  };
  if (r.least > full.least || r.most != 0) {
    const std::int64_t step = std::max(-r.least, r.most) + 1;  // the window
    if (r.queries.size() <= step) return {r};
    for (std::int64_t at = r.queries.begin; at < r.queries.end; at += step)
      add({at, std::min(r.queries.end, at + step)}, r.keys);
    return parts;
  }
  // Keys before the first query; queries and keys of the same tokens; queries after the last key.
  const std::int64_t middle = std::min(r.queries.end, r.keys.end);
  add(r.queries, {r.keys.begin, r.queries.begin});
  add({r.queries.begin, middle}, {r.queries.begin, middle});
  add({middle, r.queries.end}, {r.queries.begin, middle});
  return parts;
}

std::int64_t pairs(const std::vector<Rectangle>& all, Interval queries) {
  std::int64_t sum = 0;
  auto r = std::lower_bound(
      all.begin(), all.end(), queries.begin,
      [](const Rectangle& a, std::int64_t begin) { return a.queries.end <= begin; });
  for (; r != all.end() && r->queries.begin < queries.end; ++r)
    sum += pairs(Rectangle{
        {std::max(r->queries.begin, queries.begin), std::min(r->queries.end, queries.end)},
        r->keys,
        r->least,
        r->most});
  return sum;
}

}  // namespace polyphony
