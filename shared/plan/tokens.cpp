#include "shared/plan/tokens.h"

#include <algorithm>
#include <numeric>

namespace polyphony {
namespace {

constexpr std::int64_t kBlocksPerRank = 16;  // finer deals gain little and cut rows into pieces

void append(std::vector<Interval>& list, Interval interval) {
  if (interval.size() == 0) return;
  if (!list.empty() && list.back().end == interval.begin)
    list.back().end = interval.end;
  else
    list.push_back(interval);
}

struct Block {
  Interval rows;
  double cost = 0;
};

// Blocks never span samples, so that a block's pairs follow from where it stands in its sample.
std::vector<Block> make_blocks(const std::vector<std::int64_t>& lengths, int ranks,
                               double linear_pairs) {
  const std::int64_t tokens = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  const std::int64_t size = std::max<std::int64_t>(1, tokens / (kBlocksPerRank * ranks));
  std::vector<Block> blocks;
  std::int64_t first = 0;
  for (const std::int64_t length : lengths) {
    for (std::int64_t at = 0; at < length; at += size) {
      const std::int64_t end = std::min(length, at + size);
      const auto pairs = static_cast<double>(end * (end + 1) / 2 - at * (at + 1) / 2);
      blocks.push_back(
          {{first + at, first + end}, pairs + linear_pairs * static_cast<double>(end - at)});
    }
    first += length;
  }
  return blocks;
}

}  // namespace

std::vector<std::vector<Interval>> deal_tokens(TokenAssignment policy,
                                               const std::vector<std::int64_t>& lengths, int ranks,
                                               double linear_pairs) {
  const std::int64_t tokens = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  const auto count = static_cast<std::size_t>(ranks);
  std::vector<std::vector<Interval>> dealt(count);
  switch (policy) {
    case TokenAssignment::contiguous:
      for (int r = 0; r < ranks; ++r)
        append(dealt[static_cast<std::size_t>(r)],
               {cut_begin(tokens, ranks, r), cut_begin(tokens, ranks, r + 1)});
      return dealt;
    case TokenAssignment::zigzag:
      for (int part = 0; part < 2 * ranks; ++part)
        append(dealt[static_cast<std::size_t>(std::min(part, 2 * ranks - 1 - part))],
               {cut_begin(tokens, 2 * ranks, part), cut_begin(tokens, 2 * ranks, part + 1)});
      return dealt;
    case TokenAssignment::balanced:
      break;
  }
  std::vector<Block> blocks = make_blocks(lengths, ranks, linear_pairs);
  std::stable_sort(blocks.begin(), blocks.end(),
                   [](const Block& a, const Block& b) { return a.cost > b.cost; });
  std::vector<double> load(count, 0.0);
  std::vector<std::vector<Interval>> pieces(count);
  for (const Block& block : blocks) {
    const auto least =
        static_cast<std::size_t>(std::min_element(load.begin(), load.end()) - load.begin());
    load[least] += block.cost;
    pieces[least].push_back(block.rows);
  }
  for (std::size_t r = 0; r < count; ++r) {
    std::sort(pieces[r].begin(), pieces[r].end());
    for (const Interval& piece : pieces[r]) append(dealt[r], piece);
  }
  return dealt;
}

}  // namespace polyphony
