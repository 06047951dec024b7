// Entrain: assigns the samples of each batch to microbatches so that encoder work and language work
// are both balanced. It decides which samples' encoder items and which samples' tokens a microbatch
// holds, and in which order microbatches run. Work may be in any additive unit (e.g. seconds).
//   1. replicas      assigns a batch's samples to data-parallel replicas
//   2. microbatches  assigns a replica's samples to microbatches, balancing encoder work
//   3. deferral      moves samples from microbatches with much language work to microbatches with
//                    little, which run right after them: the encoder output of a sample is kept for
//                    at most one more microbatch
// A sample is never split.
//
// Source: Entrain, arXiv 2605.27918, sections 4 and 5, algorithm 3; own code. Where the paper
// leaves a choice open, or this code differs from it:
//   * Replicas receive equal language work, not equal sample counts: losses are divided by the
//     batch's totals, and the slowest replica sets the step time.
//   * The strata of step 3 are the halves below and above the median language work; ties go by
//     position.
//   * Samples without encoder work do not affect encoder balance. They are assigned last, each to
//     the microbatch with the least language work.
//   * All microbatches are used. The paper uses ⌊Σ encoder work / largest⌋, so that none is idle
//     while a very large sample runs. On seven heavy-tailed scenarios that was slower in every
//     case, by 0.4 to 23 % (once slower than without a planner), and larger microbatches save more
//     activations.
//   * Of equally loaded microbatches or replicas, the first one takes the next sample.
//   * Subset sums use sample works rounded to 1/4096 of the microbatch's work. Of two sums equally
//     near the wanted one the smaller is moved, so that a microbatch never gives away all its
//     samples.
//   * Order of microbatches: by position, the pairs that must move a sample; then the other pairs
//     of an overloaded and an underloaded microbatch; then, if their number is odd, the one left
//     over.
#pragma once

#include <cstdint>
#include <vector>

namespace polyphony::entrain {

struct SampleWork {
  double encoder = 0, language = 0;
};
using Positions = std::vector<int>;  // indices into a list of samples, ascending

// Returns the samples of each replica. Samples are assigned by descending encoder work, each to the
// replica with the least language work.
std::vector<Positions> deal_replicas(const std::vector<SampleWork>& samples, int replicas);

// Returns the samples of each microbatch. Samples with much language work are assigned first, then
// those with little, each group by descending encoder work, to the microbatch with the least
// encoder work. No microbatch gets more than Σ/n + (1 − 1/n)·largest encoder work (Graham 1966,
// list scheduling).
std::vector<Positions> deal_encoder_work(const std::vector<SampleWork>& samples, int microbatches);

// Finds the subset of a list of works whose sum is nearest to a wanted value.
class SubsetSums {
 public:
  explicit SubsetSums(std::vector<double> works);
  Positions nearest(double wanted) const;

 private:
  static constexpr int kUnits = 4096;
  using Words = std::vector<std::uint64_t>;  // bit u is set if some subset sums to u units
  bool reaches(std::size_t first_works, int units) const;

  std::vector<double> works_;
  std::vector<int> units_;  // of each work
  int total_ = 0;
  std::vector<Words> reached_;  // [n]: sums of subsets of the first n works
};

// A matching of rows (overloaded microbatches) to columns (underloaded ones): each row gives
// samples to its column.
struct Pairing {
  double limit = 0;         // smallest possible maximum work after the moves
  std::vector<int> column;  // by row
  std::vector<bool> gives;  // by row: its own work exceeds the limit, so it must give samples
  bool operator==(const Pairing&) const = default;
};
// Returns the pairing with the smallest limit. `together[r][c]`: the larger of the works of r and c
// after r has given to c; `alone[r]`: work of r if it gives nothing; `floor`: largest work of any
// column before the moves. There must be at least as many columns as rows. Bottleneck matching:
// binary search of the limit, augmenting paths.
Pairing pair_up(const std::vector<std::vector<double>>& together, const std::vector<double>& alone,
                double floor);

// One encoder microbatch, by where the tokens of its samples go: `kept` to the language microbatch
// of the same slot, `deferred` to that of the next slot.
struct Slot {
  Positions kept, deferred;
  bool operator==(const Slot&) const = default;
};
// Returns the slots in the order in which they run: slots 2p and 2p + 1 form a pair, of which the
// first may defer samples. `assigned`: the samples of each encoder microbatch.
std::vector<Slot> defer(const std::vector<SampleWork>& samples,
                        const std::vector<Positions>& assigned);
// Returns the language work of each slot, deferred samples included.
std::vector<double> language_works(const std::vector<SampleWork>& samples,
                                   const std::vector<Slot>& slots);

// Returns a lower bound of the spread (standard deviation over mean) of the works of `microbatches`
// microbatches, over all assignments of whole samples.
//   The j fullest microbatches hold at least the j largest samples. Under that constraint the most
//   even works are: one large sample each, as long as that sample exceeds an even share of what
//   remains, and even shares for the rest. With one such sample of λ means the bound is
//   (λ − 1) / √(n − 1).
double least_spread(std::vector<double> samples, int microbatches);

// Runs steps 2 and 3 for one replica. Without deferral, step 3 is left out, and the slots have the
// order of step 2.
std::vector<Slot> plan_replica(const std::vector<SampleWork>& samples, int microbatches,
                               bool deferral = true);

}  // namespace polyphony::entrain

namespace polyphony {

// Returns how many microbatches an encoder runs per data-parallel replica and step if samples may
// be deferred.
inline int works_with_deferred(int microbatches) { return microbatches + microbatches / 2; }
// Returns the slot that an encoder microbatch belongs to.
inline int slot_of_work(int work) { return work / 3 * 2 + (work % 3 == 2 ? 1 : 0); }

}  // namespace polyphony
