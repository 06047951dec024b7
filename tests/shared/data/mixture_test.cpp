// Lists of samples, and the order in which a run draws from the parts of a mixture.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "shared/data/data.h"
#include "shared/data/mixture_order.h"
#include "shared/random.h"

namespace polyphony {
namespace {

using Weights = std::vector<std::uint64_t>;

std::vector<Item> text_of(std::int32_t tokens) { return {{Modality::text, tokens, tokens}}; }

// `size` samples, each of a length of its own.
SampleList lengths_from(std::int32_t first, std::uint64_t size) {
  SampleList list;
  for (std::uint64_t i = 0; i < size; ++i)
    list.append(text_of(first + static_cast<std::int32_t>(i)), 1);
  return list;
}

// Parts of 5, 3 and 4 samples with weights 3, 1 and 2: ids 0 to 4, 5 to 7, and 8 to 11.
Data three_parts(int global_batch) {
  Data data;
  data.global_batch = global_batch;
  data.samples.append_part(lengths_from(10, 5), 3);
  data.samples.append_part(lengths_from(20, 3), 1);
  data.samples.append_part(lengths_from(30, 4), 2);
  return data;
}

// Returns the ids of the run's samples [0, count), which must be whole steps.
std::vector<std::uint32_t> ids_of_run(const Data& data, std::size_t count) {
  std::vector<std::uint32_t> ids;
  for (std::uint64_t step = 0; ids.size() < count; ++step)
    for (const Sample& sample : take_batch(data, step).samples) ids.push_back(sample.id);
  REQUIRE(ids.size() == count);
  return ids;
}

// Returns the greatest difference of a part's count from its exact share of the first positions,
// over all parts and numbers of positions. Checks that each part's samples are counted one by one.
double worst_difference(const Weights& weights, std::uint64_t positions) {
  const MixtureOrder order(weights);
  const auto all = static_cast<double>(std::accumulate(weights.begin(), weights.end(), 0ull));
  Weights counts(weights.size(), 0);
  double worst = 0;
  bool counted = true;
  for (std::uint64_t p = 0; p < positions; ++p) {
    const MixtureOrder::Place place = order.at(p);
    counted = counted && place.number == counts[place.part];
    ++counts[place.part];
    for (std::size_t i = 0; i < weights.size(); ++i)
      worst = std::max(
          worst, std::abs(static_cast<double>(counts[i]) -
                          static_cast<double>(p + 1) * static_cast<double>(weights[i]) / all));
  }
  CHECK(counted);
  return worst;
}

}  // namespace

TEST_SUITE("mixtures") {
  // Of p positions, the nearest whole number to 3p/4 is the first part's, halves rounded up:
  // 0 1 2 2 3 4 5 5 6 for p = 0 to 8.
  TEST_CASE("two parts by hand") {
    using Place = MixtureOrder::Place;
    const MixtureOrder order({3, 1});
    const std::vector<Place> expected{{0, 0}, {0, 1}, {1, 0}, {0, 2},
                                      {0, 3}, {0, 4}, {1, 1}, {0, 5}};
    for (std::uint64_t p = 0; p < expected.size(); ++p) CHECK(order.at(p) == expected[p]);
    // Without state: 4 · 10^18 + 2 positions are 10^18 rounds of four and the beginning of one.
    constexpr std::uint64_t kFar = 1'000'000'000'000'000'000;
    CHECK(order.at(4 * kFar) == Place{0, 3 * kFar});
    CHECK(order.at(4 * kFar + 2) == Place{1, kFar});
    CHECK(MixtureOrder({7}).at(kFar) == Place{0, kFar});
  }

  TEST_CASE("parts have their shares of the samples at any time") {
    CHECK(worst_difference({3, 1, 2}, 10'000) <= 1);
    CHECK(worst_difference({1, 1}, 1000) <= 0.5);
    CHECK(worst_difference({1, 1'000'000}, 1000) <= 0.5);
    CHECK(worst_difference(Weights(133, 1), 2000) < 1.5);  // shards of one data set
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
      Weights weights(3 + random_bits(seed, 0) % 20);
      for (std::size_t i = 0; i < weights.size(); ++i)
        weights[i] = static_cast<std::uint64_t>(std::exp(7 * random_uniform(seed, i + 1)) * 1e6);
      const double worst = worst_difference(weights, 500);
      CHECK(worst < 2);
      if (weights.size() == 3) CHECK(worst <= 1);
    }
  }

  TEST_CASE("every part goes through its samples once in an epoch of its own") {
    const Data data = three_parts(6);
    const std::vector<std::uint32_t> ids = ids_of_run(data, 6000);
    std::map<int, std::vector<std::uint32_t>> of_part;
    for (const std::uint32_t id : ids) of_part[id < 5 ? 0 : id < 8 ? 1 : 2].push_back(id);
    CHECK(of_part[0].size() == 3000);
    CHECK(of_part[1].size() == 1000);
    CHECK(of_part[2].size() == 2000);
    const std::size_t sizes[] = {5, 3, 4};
    for (int part = 0; part < 3; ++part) {
      std::set<std::vector<std::uint32_t>> orders;
      const std::vector<std::uint32_t>& own = of_part[part];
      for (std::size_t begin = 0; begin + sizes[part] <= own.size(); begin += sizes[part]) {
        std::vector<std::uint32_t> epoch(
            own.begin() + static_cast<std::ptrdiff_t>(begin),
            own.begin() + static_cast<std::ptrdiff_t>(begin + sizes[part]));
        orders.insert(epoch);
        std::sort(epoch.begin(), epoch.end());
        REQUIRE(std::adjacent_find(epoch.begin(), epoch.end()) == epoch.end());
      }
      CHECK(orders.size() > 3);  // epochs are shuffled differently
    }
  }

  TEST_CASE("the order does not depend on how the run is divided into steps") {
    const std::vector<std::uint32_t> ids = ids_of_run(three_parts(1), 420);
    for (const int global_batch : {2, 7, 60, 420})
      CHECK(ids_of_run(three_parts(global_batch), 420) == ids);
    // A run that continues in mid-epoch needs only the number of the step.
    const Batch batch = take_batch(three_parts(7), 13);
    for (std::size_t i = 0; i < 7; ++i) CHECK(batch.samples[i].id == ids[13 * 7 + i]);
    Data other = three_parts(1);
    other.seed = 2;
    CHECK(ids_of_run(other, 420) != ids);
  }

  TEST_CASE("without shuffle, parts keep their own order") {
    Data data = three_parts(12);
    data.shuffle = false;
    // Of p positions, the first part has round(p/2): 0 1 1 2 2 …, so every second one. Of the
    // others' q positions, the third part has round(2q/3): 0 1 1 2 3 3 4.
    std::vector<int> lengths;
    for (const Sample& sample : take_batch(data, 0).samples)
      lengths.push_back(sample.items.front().tokens);
    CHECK(lengths == std::vector<int>{10, 30, 11, 20, 12, 31, 13, 32, 14, 21, 10, 33});
  }

  TEST_CASE("a mixture of one part has the order of the part alone") {
    Data alone, mixture;
    alone.global_batch = mixture.global_batch = 40;
    alone.samples = lengths_from(1, 17);
    mixture.samples.append_part(lengths_from(1, 17), 5);
    CHECK(take_batch(alone, 3) == take_batch(mixture, 3));
    CHECK_FALSE(alone.samples == mixture.samples);
  }
}

TEST_SUITE("lists of samples") {
  TEST_CASE("equal neighbors take the memory of one") {
    SampleList list;
    list.append(text_of(8), 1'000'000'000);
    list.push_back({0, text_of(8)});
    list.append(text_of(3), 1);
    list.append(text_of(5), 0);
    CHECK(list.runs().size() == 2);
    CHECK(list.size() == 1'000'000'002);
    CHECK(list[0] == Sample{0, text_of(8)});
    CHECK(list[1'000'000'000] == Sample{1'000'000'000, text_of(8)});
    CHECK(list[1'000'000'001] == Sample{1'000'000'001, text_of(3)});
    CHECK(list.parts() == std::vector<SampleList::Part>{{0, 1'000'000'002, 1}});
    CHECK_THROWS(list[1'000'000'002]);
  }

  TEST_CASE("parts follow each other, and samples are numbered by position") {
    const Data data = three_parts(1);
    CHECK(data.samples.parts() == std::vector<SampleList::Part>{{0, 5, 3}, {5, 3, 1}, {8, 4, 2}});
    CHECK(data.samples[6] == Sample{6, text_of(21)});
    CHECK(data.samples[11] == Sample{11, text_of(33)});
    const std::vector<Sample> samples{{0, text_of(4)}, {1, text_of(4)}, {2, text_of(7)}};
    const SampleList list = samples;
    CHECK((list.size() == 3 && list.runs().size() == 2));
    for (std::size_t i = 0; i < 3; ++i) CHECK(list[i] == samples[i]);
  }
}

}  // namespace polyphony
