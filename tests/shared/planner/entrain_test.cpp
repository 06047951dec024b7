#include "shared/planner/entrain.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "shared/random.h"

namespace polyphony {
namespace {

using entrain::Positions;
using entrain::SampleWork;
using entrain::Slot;

struct Draws {
  std::uint64_t seed = 0, next = 0;
  double uniform() { return random_uniform(seed, next++); }
  double normal() { return random_normal(seed, next++); }
};

std::vector<SampleWork> random_samples(Draws& random, int count) {
  std::vector<SampleWork> samples;
  for (int i = 0; i < count; ++i) {
    const double encoder = random.uniform() < 0.2 ? 0 : std::exp(random.normal());
    samples.push_back({encoder, std::exp(0.7 * random.normal()) + 0.5 * encoder});
  }
  return samples;
}

std::vector<double> works_of(const std::vector<SampleWork>& samples,
                             const std::vector<Positions>& dealt, double SampleWork::* by) {
  std::vector<double> works;
  for (const Positions& list : dealt) {
    works.push_back(0);
    for (const int s : list) works.back() += samples[static_cast<std::size_t>(s)].*by;
  }
  return works;
}

double largest(const std::vector<double>& works) {
  return *std::max_element(works.begin(), works.end());
}

// Checks that every position below `count` occurs once.
bool is_partition(std::vector<Positions> lists, int count) {
  Positions all;
  for (const Positions& list : lists) all.insert(all.end(), list.begin(), list.end());
  std::sort(all.begin(), all.end());
  Positions wanted(static_cast<std::size_t>(count));
  std::iota(wanted.begin(), wanted.end(), 0);
  return all == wanted;
}

}  // namespace

TEST_SUITE("entrain") {
  // The paper's figures 8, 9 and 16: microbatches 1 to 6 have language work 3 4 8 6 6 9, with
  // samples that reproduce its table of pairs.
  TEST_CASE("the published example: six microbatches, pairs 3-2, 6-1, 4-5, limit 6") {
    const std::vector<std::vector<double>> together{{6, 6, 8}, {6, 6, 6}, {6, 7, 9}};
    const entrain::Pairing pairing = entrain::pair_up(together, {8, 6, 9}, 6);
    CHECK(pairing == entrain::Pairing{6, {1, 2, 0}, {true, false, true}});

    std::vector<SampleWork> samples;
    std::vector<Positions> dealt;
    for (const std::vector<double>& works :
         std::vector<std::vector<double>>{{3}, {4}, {2, 2, 2, 2}, {6}, {6}, {3, 3, 3}}) {
      dealt.emplace_back();
      for (const double work : works) {
        dealt.back().push_back(static_cast<int>(samples.size()));
        samples.push_back({1, work});
      }
    }
    const std::vector<Slot> slots = entrain::defer(samples, dealt);
    // Microbatch 3 gives one of its samples 2 to 5, 6 one of its samples 8 to 10.
    CHECK(slots ==
          std::vector<Slot>{
              {{3, 4, 5}, {2}}, {{1}, {}}, {{9, 10}, {8}}, {{0}, {}}, {{6}, {}}, {{7}, {}}});
    CHECK(entrain::language_works(samples, slots) == std::vector<double>(6, 6));
  }

  TEST_CASE("replicas: samples by descending encoder work, each to the least language work") {
    // Descending encoder work: 1 (5), 3 (4), 0 (3), 4 (2), 2 (1). Language work: 4 goes to the
    // first replica; 1, 2 and 1 to the second; the last 1 to the first of two equal replicas.
    const std::vector<SampleWork> samples{{3, 2}, {5, 4}, {1, 1}, {4, 1}, {2, 1}};
    CHECK(entrain::deal_replicas(samples, 2) == std::vector<Positions>{{1, 2}, {0, 3, 4}});
    Draws random{1};
    for (int i = 0; i < 20; ++i) {
      const std::vector<SampleWork> more = random_samples(random, 64);
      const auto dealt = entrain::deal_replicas(more, 4);
      CHECK(is_partition(dealt, 64));
      std::vector<Positions> in_order(4);
      for (int s = 0; s < 64; ++s) in_order[static_cast<std::size_t>(s / 16)].push_back(s);
      const auto spread = [&](const std::vector<Positions>& lists) {
        const std::vector<double> works = works_of(more, lists, &SampleWork::language);
        return largest(works) - *std::min_element(works.begin(), works.end());
      };
      CHECK(spread(dealt) < spread(in_order));
    }
  }

  TEST_CASE(
      "encoder work: samples of large language work first, then small, each to the least loaded") {
    // Samples 0 to 3 have large language work: encoder work 6 5 4 3 gives 6 + 3 and 5 + 4. Then
    // sample 4 (encoder work 4) goes to the first of two equals and 5 (1) to the other. Samples 6
    // and 7 have no encoder work; language work is then 22 and 21, so 6 (3) goes to the second and
    // 7 (1) to the first.
    const std::vector<SampleWork> samples{{6, 10}, {5, 10}, {4, 10}, {3, 10},
                                          {4, 2},  {1, 1},  {0, 3},  {0, 1}};
    CHECK(entrain::deal_encoder_work(samples, 2) ==
          std::vector<Positions>{{0, 3, 4, 7}, {1, 2, 5, 6}});
  }

  TEST_CASE("list scheduling stays within Graham's bound and loses no sample") {
    Draws random{2};
    for (int i = 0; i < 200; ++i) {
      const int count = 8 + i % 57, parts = 1 + i % 9;
      const std::vector<SampleWork> samples = random_samples(random, count);
      const auto dealt = entrain::deal_encoder_work(samples, parts);
      CHECK(is_partition(dealt, count));
      const std::vector<double> works = works_of(samples, dealt, &SampleWork::encoder);
      double most = 0;
      for (const SampleWork& sample : samples) most = std::max(most, sample.encoder);
      const double mean = std::accumulate(works.begin(), works.end(), 0.0) / parts;
      CHECK(largest(works) <= mean + (1 - 1.0 / parts) * most + 1e-9);
    }
  }

  // 6, 1, 1 over two microbatches: works 6 and 2, mean 4: (1.5 − 1)/√1. 4 and four 1s over three:
  // works 4, 2, 2, mean 8/3: (1.5 − 1)/√2. Four equal samples over four: no spread.
  TEST_CASE("no assignment has less spread than the lower bound from the largest samples") {
    CHECK(entrain::least_spread({6, 1, 1}, 2) == doctest::Approx(0.5));
    CHECK(entrain::least_spread({1, 1, 4, 1, 1}, 3) == doctest::Approx(0.5 / std::sqrt(2.0)));
    CHECK(entrain::least_spread({2, 2, 2, 2}, 4) == 0);
    CHECK(entrain::least_spread({0, 0}, 2) == 0);
    for (std::uint64_t seed = 0; seed < 40;
         ++seed) {  // six samples over three: all 729 assignments
      std::vector<double> samples;
      double sum = 0;
      for (std::uint64_t i = 0; i < 6; ++i) {
        samples.push_back(std::exp(2 * random_normal(seed, i)));
        sum += samples.back();
      }
      double best = 1e9;
      for (int dealing = 0; dealing < 729; ++dealing) {
        double works[3] = {0, 0, 0};
        for (int i = 0, code = dealing; i < 6; ++i, code /= 3)
          works[code % 3] += samples[static_cast<std::size_t>(i)];
        double squares = 0;
        for (const double work : works) squares += std::pow(3 * work / sum - 1, 2);
        best = std::min(best, std::sqrt(squares / 3));
      }
      CHECK(entrain::least_spread(samples, 3) <= best + 1e-12);
    }
  }

  TEST_CASE("nearest() finds the nearest subset sum, except for rounding") {
    Draws random{3};
    for (int i = 0; i < 200; ++i) {
      std::vector<double> works;
      for (int w = 0; w < 1 + i % 9; ++w) works.push_back(std::exp(random.normal()));
      const double sum = std::accumulate(works.begin(), works.end(), 0.0);
      const double wanted = random.uniform() * sum;
      double best = sum;
      for (unsigned subset = 0; subset < 1u << works.size(); ++subset) {
        double of = 0;
        for (std::size_t w = 0; w < works.size(); ++w)
          if (subset >> w & 1) of += works[w];
        best = std::min(best, std::abs(of - wanted));
      }
      double found = 0;
      for (const int w : entrain::SubsetSums(works).nearest(wanted))
        found += works[static_cast<std::size_t>(w)];
      const double rounding =
          static_cast<double>(works.size()) * sum / 4096;  // half a unit for each work
      CHECK(std::abs(found - wanted) <= best + rounding);
    }
    CHECK(entrain::SubsetSums({2}).nearest(1) ==
          Positions{});  // equally near: the smaller sum is moved
    CHECK(entrain::SubsetSums({1, 2, 3}).nearest(100) == Positions{0, 1, 2});
  }

  TEST_CASE("pair_up() finds the smallest limit of any matching") {
    Draws random{4};
    for (int i = 0; i < 300; ++i) {
      const std::size_t rows = static_cast<std::size_t>(1 + i % 5),
                        columns = rows + static_cast<std::size_t>(i % 2);
      std::vector<std::vector<double>> together(rows, std::vector<double>(columns));
      std::vector<double> alone;
      for (auto& row : together)
        for (double& of : row) of = 1 + std::floor(8 * random.uniform());
      for (std::size_t r = 0; r < rows; ++r) alone.push_back(3 + std::floor(8 * random.uniform()));
      const double floor = 1 + std::floor(3 * random.uniform());
      std::vector<std::size_t> order(columns);
      std::iota(order.begin(), order.end(), std::size_t{0});
      double best = 1e9;
      do {
        double limit = floor;
        for (std::size_t r = 0; r < rows; ++r)
          limit = std::max(limit, std::min(alone[r], together[r][order[r]]));
        best = std::min(best, limit);
      } while (std::next_permutation(order.begin(), order.end()));
      const entrain::Pairing pairing = entrain::pair_up(together, alone, floor);
      CHECK(pairing.limit == best);
      double reached = floor;
      std::vector<bool> taken(columns, false);
      for (std::size_t r = 0; r < rows; ++r) {
        const auto c = static_cast<std::size_t>(pairing.column[r]);
        CHECK(!taken[c]);
        taken[c] = true;
        reached = std::max(reached, pairing.gives[r] ? together[r][c] : alone[r]);
      }
      CHECK(reached == best);
    }
  }

  TEST_CASE("planned microbatches hold every sample once and lower the largest language work") {
    Draws random{5};
    int deferred = 0;
    double before_sum = 0, after_sum = 0;
    for (int i = 0; i < 100; ++i) {
      const int count = 16 + i % 49, microbatches = 1 + i % 11;
      const std::vector<SampleWork> samples = random_samples(random, count);
      const std::vector<Slot> slots = entrain::plan_replica(samples, microbatches);
      REQUIRE(slots.size() == static_cast<std::size_t>(microbatches));
      std::vector<Positions> lists;
      for (std::size_t s = 0; s < slots.size(); ++s) {
        lists.push_back(slots[s].kept);
        lists.push_back(slots[s].deferred);
        const bool may = s % 2 == 0 && s + 1 < slots.size();
        CHECK((may || slots[s].deferred.empty()));
        deferred += static_cast<int>(slots[s].deferred.size());
      }
      CHECK(is_partition(lists, count));
      const auto dealt = entrain::deal_encoder_work(samples, microbatches);
      const double before = largest(works_of(samples, dealt, &SampleWork::language)),
                   after = largest(entrain::language_works(samples, slots));
      CHECK(after <= before);
      const std::vector<Slot> plain = entrain::plan_replica(samples, microbatches, false);
      REQUIRE(plain.size() == dealt.size());
      for (std::size_t s = 0; s < plain.size(); ++s) CHECK(plain[s] == Slot{dealt[s], {}});
      before_sum += before;
      after_sum += after;
    }
    CHECK(deferred > 100);
    CHECK(after_sum < 0.95 * before_sum);
  }
}

}  // namespace polyphony
