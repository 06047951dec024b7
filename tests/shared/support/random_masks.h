// Random masks, modeled on Cornstarch's micro-benchmark of 2024: blocks of 1/64 to 1/16 of the
// sequence.
//   causal_blocks     causal within blocks; the last block attends to all rows before it
//   prefix            a prefix of 10 to 100 % attends to itself in both directions, all else is
//                     causal
//   prefix_documents  a prefix of the first block; blocks that attend to themselves in both
//                     directions; rows from 90 % on attend to everything
//   embedded          10 to 30 % causal text, then items that attend to themselves only,
//                     alternating with text
//   packed            four sequences, each of one of the last three kinds
#pragma once

#include <algorithm>
#include <random>

#include "shared/work/token_mask.h"

namespace polyphony::test {

class RandomMask {
 public:
  enum class Kind { causal_blocks, prefix, prefix_documents, embedded, packed };

  static TokenMask make(Kind kind, std::int64_t tokens, unsigned seed) {
    RandomMask maker(seed);
    maker.add(kind, tokens);
    return maker.mask_;
  }

 private:
  explicit RandomMask(unsigned seed) : random_(seed) {}

  // Own drawing code: distributions differ between standard libraries.
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(high - low + 1));
  }
  std::int64_t block(std::int64_t tokens) {
    return std::max<std::int64_t>(1, between(tokens / 64, tokens / 16));
  }

  void add(Kind kind, std::int64_t tokens) {
    const int first = mask_.groups;
    const std::int64_t end = mask_.tokens() + tokens;
    const auto left = [&] { return end - mask_.tokens(); };
    switch (kind) {
      case Kind::causal_blocks: {
        int group = first;
        for (std::int64_t size = block(tokens); size < left(); size = block(tokens), ++group)
          mask_.add(size, group, true, {group, group + 1});
        return mask_.add(left(), group, true, {first, group + 1});
      }
      case Kind::prefix:
        mask_.add(between(tokens / 10, tokens), first, false, {first, first + 1});
        return mask_.add(left(), first + 1, true, {first, first + 2});
      case Kind::prefix_documents: {
        const std::int64_t whole = block(tokens), prefix = between(1, whole);
        mask_.add(prefix, first, false, {first, first + 1});
        mask_.add(whole - prefix, first + 1, true, {first, first + 2});
        int group = first + 2;
        for (; left() > tokens / 10; ++group)
          mask_.add(std::min(block(tokens), left() - tokens / 10), group, false,
                    {group, group + 1});
        return mask_.add(left(), group, false, {first, group + 1});
      }
      case Kind::embedded: {
        constexpr int kMost = 64;  // items: a block is at least 1/64
        const Interval everything{first, first + 1 + kMost};
        mask_.add(between(tokens / 10, tokens * 3 / 10), first, true, everything);
        for (int group = first + 1; left() > 0; ++group) {
          mask_.add(std::min(block(tokens), left()), group, false, {group, group + 1});
          mask_.add(std::min(block(tokens), left()), first, true, everything);
        }
        return;
      }
      case Kind::packed:
        for (int part = 0; part < 4; ++part) {
          const Kind kinds[] = {Kind::prefix, Kind::prefix_documents, Kind::embedded};
          const std::int64_t size =
              part == 3 ? left() : std::min(left(), between(tokens / 8, tokens * 3 / 8));
          if (size >= 64) add(kinds[random_() % 3], size);
        }
        return mask_.add(left(), mask_.groups, true, {mask_.groups, mask_.groups + 1});
    }
  }

  TokenMask mask_;
  std::mt19937_64 random_;
};

}  // namespace polyphony::test
