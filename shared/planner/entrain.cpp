#include "shared/planner/entrain.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>

#include "shared/error.h"

namespace polyphony::entrain {
namespace {

Positions all_of(const std::vector<SampleWork>& samples) {
  Positions all(samples.size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

const SampleWork& at(const std::vector<SampleWork>& samples, int position) {
  return samples[static_cast<std::size_t>(position)];
}

void sort_descending(const std::vector<SampleWork>& samples, Positions& list,
                     double SampleWork::* by) {
  std::stable_sort(list.begin(), list.end(),
                   [&](int a, int b) { return at(samples, a).*by > at(samples, b).*by; });
}

std::size_t least(const std::vector<double>& works) {
  return static_cast<std::size_t>(std::min_element(works.begin(), works.end()) - works.begin());
}

double language_work(const std::vector<SampleWork>& samples, const Positions& list) {
  double sum = 0;
  for (const int s : list) sum += at(samples, s).language;
  return sum;
}

}  // namespace

std::vector<Positions> deal_replicas(const std::vector<SampleWork>& samples, int replicas) {
  const auto count = static_cast<std::size_t>(replicas);
  Positions order = all_of(samples);
  sort_descending(samples, order, &SampleWork::encoder);
  std::vector<Positions> assigned(count);
  std::vector<double> works(count, 0);
  for (const int s : order) {
    const std::size_t to = least(works);
    assigned[to].push_back(s);
    works[to] += at(samples, s).language;
  }
  for (Positions& list : assigned) std::sort(list.begin(), list.end());
  return assigned;
}

std::vector<Positions> deal_encoder_work(const std::vector<SampleWork>& samples, int microbatches) {
  Positions order = all_of(samples);
  sort_descending(samples, order, &SampleWork::language);
  Positions coarse(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(order.size() / 2)),
      fine(order.begin() + static_cast<std::ptrdiff_t>(order.size() / 2), order.end()), without;
  const auto count = static_cast<std::size_t>(microbatches);
  std::vector<Positions> assigned(count);
  std::vector<double> encoder(count, 0), language(count, 0);
  const auto give = [&](int s, std::size_t to) {
    assigned[to].push_back(s);
    encoder[to] += at(samples, s).encoder;
    language[to] += at(samples, s).language;
  };
  for (Positions* stratum : {&coarse, &fine}) {
    sort_descending(samples, *stratum, &SampleWork::encoder);
    for (const int s : *stratum)
      if (at(samples, s).encoder > 0)
        give(s, least(encoder));
      else
        without.push_back(s);
  }
  sort_descending(samples, without, &SampleWork::language);
  for (const int s : without) give(s, least(language));
  for (Positions& list : assigned) std::sort(list.begin(), list.end());
  return assigned;
}

SubsetSums::SubsetSums(std::vector<double> works) : works_(std::move(works)) {
  const double sum = std::accumulate(works_.begin(), works_.end(), 0.0);
  for (const double work : works_) {
    units_.push_back(sum > 0 ? static_cast<int>(std::lround(work / sum * kUnits)) : 0);
    total_ += units_.back();
  }
  reached_.assign(1, Words(static_cast<std::size_t>(total_) / 64 + 1, 0));
  reached_.front().front() = 1;
  for (const int units : units_) {
    const Words& before = reached_.back();
    Words after = before;
    const std::size_t words = static_cast<std::size_t>(units) / 64,
                      bits = static_cast<std::size_t>(units) % 64;
    for (std::size_t w = words; w < after.size(); ++w) {
      after[w] |= before[w - words] << bits;
      if (bits > 0 && w > words) after[w] |= before[w - words - 1] >> (64 - bits);
    }
    reached_.push_back(std::move(after));
  }
}

bool SubsetSums::reaches(std::size_t first_works, int units) const {
  return units >= 0 && units <= total_ &&
         (reached_[first_works][static_cast<std::size_t>(units) / 64] >> (units % 64) & 1) != 0;
}

Positions SubsetSums::nearest(double wanted) const {
  const double sum = std::accumulate(works_.begin(), works_.end(), 0.0);
  if (sum <= 0 || wanted <= 0) return {};
  const double aim = std::min(wanted / sum * kUnits, static_cast<double>(total_));
  int below = static_cast<int>(std::floor(aim)), above = below + 1;
  while (!reaches(works_.size(), below)) --below;  // the empty subset reaches 0
  while (above <= total_ && !reaches(works_.size(), above)) ++above;
  int units = above <= total_ && above - aim < aim - below ? above : below;
  Positions chosen;
  for (std::size_t w = works_.size(); w-- > 0 && units > 0;) {
    if (reaches(w, units)) continue;
    chosen.push_back(static_cast<int>(w));
    units -= units_[w];
  }
  std::reverse(chosen.begin(), chosen.end());
  return chosen;
}

namespace {

// Matches every row of `must` to a column of its own with together <= limit, if that is possible.
class Matching {
 public:
  Matching(const std::vector<std::vector<double>>& together, double limit)
      : together_(together),
        limit_(limit),
        row_of_(together.empty() ? 0 : together.front().size(), -1) {}

  bool add(std::size_t row) {
    seen_.assign(row_of_.size(), false);
    return augment(row);
  }
  const std::vector<int>& row_of() const { return row_of_; }

 private:
  bool augment(std::size_t row) {
    for (std::size_t c = 0; c < row_of_.size(); ++c) {
      if (together_[row][c] > limit_ || seen_[c]) continue;
      seen_[c] = true;
      if (row_of_[c] >= 0 && !augment(static_cast<std::size_t>(row_of_[c]))) continue;
      row_of_[c] = static_cast<int>(row);
      return true;
    }
    return false;
  }

  const std::vector<std::vector<double>>& together_;
  double limit_;
  std::vector<int> row_of_;  // by column; -1: free
  std::vector<bool> seen_;
};

}  // namespace

Pairing pair_up(const std::vector<std::vector<double>>& together, const std::vector<double>& alone,
                double floor) {
  const std::size_t rows = alone.size(), columns = rows == 0 ? 0 : together.front().size();
  POLYPHONY_CHECK(columns >= rows, rows << " rows, " << columns << " columns");
  std::vector<double> limits{floor};
  for (std::size_t r = 0; r < rows; ++r) {
    limits.push_back(alone[r]);
    limits.insert(limits.end(), together[r].begin(), together[r].end());
  }
  std::sort(limits.begin(), limits.end());
  limits.erase(limits.begin(), std::lower_bound(limits.begin(), limits.end(), floor));
  const auto match = [&](double limit) {
    std::optional<Matching> made(std::in_place, together, limit);
    for (std::size_t r = 0; r < rows && made; ++r)
      if (alone[r] > limit && !made->add(r)) made.reset();
    return made;
  };
  // At the largest limit no row must give.
  const auto first = std::partition_point(limits.begin(), limits.end() - 1,
                                          [&](double limit) { return !match(limit); });
  Pairing pairing{*first, std::vector<int>(rows, -1), std::vector<bool>(rows, false)};
  const std::vector<int> row_of = match(*first)->row_of();
  for (std::size_t c = 0; c < columns; ++c)
    if (row_of[c] >= 0) {
      pairing.column[static_cast<std::size_t>(row_of[c])] = static_cast<int>(c);
      pairing.gives[static_cast<std::size_t>(row_of[c])] = true;
    }
  for (std::size_t r = 0, c = 0; r < rows; ++r) {
    if (pairing.gives[r]) continue;
    while (row_of[c] >= 0) ++c;
    pairing.column[r] = static_cast<int>(c++);
  }
  return pairing;
}

std::vector<Slot> defer(const std::vector<SampleWork>& samples,
                        const std::vector<Positions>& assigned) {
  std::vector<double> works;
  for (const Positions& list : assigned) works.push_back(language_work(samples, list));
  Positions order(assigned.size());
  std::iota(order.begin(), order.end(), 0);
  const auto work = [&](int m) { return works[static_cast<std::size_t>(m)]; };
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return work(a) > work(b); });
  const auto half = order.begin() + static_cast<std::ptrdiff_t>(order.size() / 2);
  Positions over(order.begin(), half), under(half, order.end());
  std::sort(over.begin(), over.end());
  std::sort(under.begin(), under.end());

  std::vector<SubsetSums> sums;
  std::vector<std::vector<double>> together;
  std::vector<double> alone;
  const auto move = [&](std::size_t row, int from, int to) {  // positions in assigned[from]
    return sums[row].nearest((work(from) - work(to)) / 2);
  };
  for (const int from : over) {
    const Positions& list = assigned[static_cast<std::size_t>(from)];
    std::vector<double> mine;
    for (const int s : list) mine.push_back(at(samples, s).language);
    sums.emplace_back(mine);
    alone.push_back(work(from));
    together.emplace_back();
    for (const int to : under) {
      double moved = 0;
      for (const int i : move(sums.size() - 1, from, to))
        moved += mine[static_cast<std::size_t>(i)];
      together.back().push_back(std::max(work(from) - moved, work(to) + moved));
    }
  }
  double floor = 0;
  for (const int m : under) floor = std::max(floor, work(m));
  const Pairing pairing = pair_up(together, alone, floor);

  std::vector<Slot> slots;
  std::vector<bool> taken(under.size(), false);
  for (const bool gives : {true, false})
    for (std::size_t r = 0; r < over.size(); ++r) {
      if (pairing.gives[r] != gives) continue;
      const auto column = static_cast<std::size_t>(pairing.column[r]);
      const Positions& list = assigned[static_cast<std::size_t>(over[r])];
      const Positions moved = gives ? move(r, over[r], under[column]) : Positions{};
      Slot slot;
      for (std::size_t i = 0; i < list.size(); ++i) {
        const bool moves = std::binary_search(moved.begin(), moved.end(), static_cast<int>(i));
        (moves ? slot.deferred : slot.kept).push_back(list[i]);
      }
      slots.push_back(std::move(slot));
      slots.push_back({assigned[static_cast<std::size_t>(under[column])], {}});
      taken[column] = true;
    }
  for (std::size_t c = 0; c < under.size(); ++c)
    if (!taken[c]) slots.push_back({assigned[static_cast<std::size_t>(under[c])], {}});
  return slots;
}

std::vector<double> language_works(const std::vector<SampleWork>& samples,
                                   const std::vector<Slot>& slots) {
  std::vector<double> works;
  double waiting = 0;
  for (const Slot& slot : slots) {
    works.push_back(waiting + language_work(samples, slot.kept));
    waiting = language_work(samples, slot.deferred);
  }
  return works;
}

double least_spread(std::vector<double> samples, int microbatches) {
  std::sort(samples.begin(), samples.end(), std::greater<>());
  double left = std::accumulate(samples.begin(), samples.end(), 0.0);
  if (left <= 0) return 0;
  const double mean = left / microbatches;
  double squares = 0;
  int bins = microbatches;
  for (const double sample : samples) {
    if (bins == 1 || sample * bins <= left) break;
    squares += std::pow(sample / mean - 1, 2);
    left -= sample;
    --bins;
  }
  squares += bins * std::pow(left / bins / mean - 1, 2);
  return std::sqrt(squares / microbatches);
}

std::vector<Slot> plan_replica(const std::vector<SampleWork>& samples, int microbatches,
                               bool deferral) {
  const std::vector<Positions> assigned = deal_encoder_work(samples, microbatches);
  if (deferral) return defer(samples, assigned);
  std::vector<Slot> slots;
  for (const Positions& kept : assigned) slots.push_back({kept, {}});
  return slots;
}

}  // namespace polyphony::entrain
