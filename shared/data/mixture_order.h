// Which part of a mixture each sample of a run comes from, in closed form: a rank that resumes in
// mid-epoch, or holds another share of a batch, needs no state of the samples before.
//   Position p counts the samples of a run from 0; w is the weight of some parts, W that of all.
// The parts, the largest weight first, are divided into two groups of as equal weights as possible,
// and each group again, down to single parts. Of the first p positions of a group, the nearest
// whole number to p · w / W belongs to its first half: w is that half's weight, W the group's.
//   Each count grows by 0 or 1 per position, and the counts of both halves add up to p.
//   Of any p positions, a part has p · w / W ± 1/2 if there are two parts, ± 1 if there are three,
//   and less than ± 2 always: a half that is divided again has at most 2/3 of its group, so errors
//   of 1/2 per division add up to less than 1/2 / (1 − 2/3), plus 1/2 for the part itself.
#pragma once

#include <cstdint>
#include <vector>

namespace polyphony {

class MixtureOrder {
 public:
  // `weights`: at least one, each positive, with a sum below 2^62.
  explicit MixtureOrder(const std::vector<std::uint64_t>& weights);

  struct Place {
    std::size_t part = 0;
    std::uint64_t number = 0;  // of the part's samples, counted from 0 over the whole run
    bool operator==(const Place&) const = default;
  };
  Place at(std::uint64_t position) const;

 private:
  std::size_t middle(std::size_t first, std::size_t last) const;

  std::vector<std::size_t> parts_;   // the largest weight first
  std::vector<std::uint64_t> sums_;  // of the weights of parts_ before each, and of all
};

}  // namespace polyphony
