// What Entrain decides anew for every batch: which samples' encoder items and which samples' tokens a
// microbatch holds, and in which order microbatches run, so that encoders and language module each do
// as much in one as in the next. Over numbers alone: work is in any unit that adds up.
//   1. replicas     a batch's samples over data-parallel lanes
//   2. microbatches of a lane, by encoder work
//   3. deferral     microbatches with much language work give samples of it to ones with little, which run
//                   right after them: what an encoder made of a sample waits for one microbatch at most
// A sample is never cut. Source: Entrain, arXiv 2605.27918, sections 4 and 5, algorithm 3; own code.
// Decided where the paper is silent:
//   * replicas take equal language work, not equal counts: losses are divided by the batch's totals, and
//     the slowest replica sets the step
//   * the strata of step 3 are the halves below and above the median language work, ties by position
//   * samples without encoder work say nothing of encoders: they go, after the others, to the
//     microbatch with the least language work
//   * all microbatches are used. The paper uses ⌊Σ encoder work / largest⌋, so that none is idle beside a
//     very large sample; of seven heavy-tailed scenarios every one was slower so, by 0.4 to 23 %, one
//     slower than without a planner, and larger microbatches keep more
//   * of equally loaded microbatches or replicas the first takes the next sample
//   * subset sums are of works rounded to a 4096th of their microbatch's; of two sums as near to what
//     is wanted the smaller is moved, so that nobody gives all
//   * microbatches of the pairs that must move something come first, by position, then the other pairs
//     of an overloaded and an underloaded one, then, of an odd number, the one left over
#pragma once

#include <cstdint>
#include <vector>

namespace polyphony::entrain {

struct SampleWork {
  double encoder = 0, language = 0;
};
using Positions = std::vector<int>;  // in a list of samples, ascending

// By replica: its samples. The one with most encoder work first, to the replica with the least
// language work.
std::vector<Positions> deal_replicas(const std::vector<SampleWork>& samples, int replicas);

// By microbatch: its samples. Those of much language work first, then those of little, each by
// descending encoder work to the microbatch with the least. No microbatch has more than
// Σ/n + (1 − 1/n)·largest of encoder work (Graham 1966, list scheduling).
std::vector<Positions> deal_encoder_work(const std::vector<SampleWork>& samples, int microbatches);

// Which of a list of works are moved so that they come to as near to `wanted` as can be.
class SubsetSums {
 public:
  explicit SubsetSums(std::vector<double> works);
  Positions nearest(double wanted) const;

 private:
  static constexpr int kUnits = 4096;
  using Words = std::vector<std::uint64_t>;  // bit u: a subset of u units
  bool reaches(std::size_t first_works, int units) const;

  std::vector<double> works_;
  std::vector<int> units_;  // of each work
  int total_ = 0;
  std::vector<Words> reached_;  // by how many of the first works may be in it
};

// Rows give to columns.
struct Pairing {
  double limit = 0;         // the least that the largest work of all can be made
  std::vector<int> column;  // by row
  std::vector<bool> gives;  // by row: must give, as its own work is above the limit
  bool operator==(const Pairing&) const = default;
};
// `together[r][c]`: the larger work of r and c after r has given to c; `alone[r]`: r's own; `floor`: the
// largest work of a column. As many columns as rows, or more. Bottleneck matching: binary search of the
// limit, augmenting paths.
Pairing pair_up(const std::vector<std::vector<double>>& together, const std::vector<double>& alone,
                double floor);

// One encoder microbatch: samples whose tokens are in the language microbatch of its place, and
// those that wait for the next.
struct Slot {
  Positions kept, deferred;
  bool operator==(const Slot&) const = default;
};
// In the order in which they run: slots 2p and 2p + 1 are a pair, of which the first may defer.
// `dealt`: encoder microbatches.
std::vector<Slot> defer(const std::vector<SampleWork>& samples,
                        const std::vector<Positions>& dealt);
// Language work by place.
std::vector<double> language_works(const std::vector<SampleWork>& samples,
                                   const std::vector<Slot>& slots);

// Standard deviation over mean of so many microbatches' works below which no dealing of whole samples gets. The j
// fullest microbatches hold at least what the j largest samples do; the least uneven works that keep to this are
// one of the largest samples each, as long as that is more than an even share of what is left, and even shares.
// With one such sample of λ means: (λ − 1) / √(n − 1).
double least_spread(std::vector<double> samples, int microbatches);

// Steps 2 and 3 for one replica.
std::vector<Slot> plan_replica(const std::vector<SampleWork>& samples, int microbatches);

}  // namespace polyphony::entrain

namespace polyphony {

// Returns how many microbatches an encoder has a lane and step when samples may be deferred.
inline int works_with_deferred(int microbatches) { return microbatches + microbatches / 2; }
// Returns the slot that an encoder microbatch belongs to.
inline int slot_of_work(int work) { return work / 3 * 2 + (work % 3 == 2 ? 1 : 0); }

}  // namespace polyphony
