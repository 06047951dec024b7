#include "shared/planner/stable_batch.h"

#include <doctest/doctest.h>

#include <cmath>

#include "shared/random.h"

namespace polyphony {
namespace {

// Samples with language work 1 and log-normal encoder work of mean `mean`.
struct Generator {
  double mean = 1, sigma = 1;
  std::uint64_t seed = 1, next = 0;
  std::vector<double> operator()(int samples) {
    double encoder = 0;
    for (int s = 0; s < samples; ++s)
      encoder += mean * std::exp(sigma * random_normal(seed, next++) - sigma * sigma / 2);
    return {encoder, static_cast<double>(samples)};
  }
};

}  // namespace

TEST_SUITE("entrain") {
  // 0.95^58 = 0.0510, 0.95^59 = 0.0485.
  TEST_CASE("59 batches must agree at 5 % and 5 %") {
    CHECK(agreeing_batches(0.05, 0.05) == 59);
    CHECK(agreeing_batches(0.01, 0.05) == 90);
    int drawn = 0;
    const auto constant = [&](int samples) {
      ++drawn;
      return std::vector<double>{3.0 * samples, 1.0 * samples};
    };
    CHECK(minimum_stable_batch(constant, 8, 64) == StableBatch{1, {6, 2}});
    CHECK(drawn == 60);  // the reference and 59 more
  }

  TEST_CASE("GPUs by largest remainder, at least one each") {
    CHECK(split_by_largest_remainder({10, 6}, 16) == std::vector<int>{10, 6});
    CHECK(split_by_largest_remainder({1.27, 1}, 16) == std::vector<int>{9, 7});    // 8.95
    CHECK(split_by_largest_remainder({5, 3, 1}, 8) == std::vector<int>{4, 3, 1});  // 4.44 2.67 0.89
    CHECK(split_by_largest_remainder({100, 1}, 8) == std::vector<int>{7, 1});      // 7.92 0.08
    CHECK(split_by_largest_remainder({98, 1, 1}, 4) ==
          std::vector<int>{2, 1, 1});  // 3.92 0.04 0.04
    CHECK(split_by_largest_remainder({0, 0}, 6) == std::vector<int>{3, 3});
  }

  TEST_CASE("batches grow until the split is stable, further if samples vary more") {
    // A share of 8·1.5/2.5 = 4.8 encoder GPUs rounds to 5, as from 4.5 to 5.5: a mean from 1.29 to
    // 2.2. At a coefficient of variation of s it takes about (1.645 s·1.5/0.21)² samples: 8 for
    // 0.25 (sigma 0.246), 240 for 1.31 (sigma 1).
    const auto narrow = minimum_stable_batch(Generator{1.5, 0.246}, 8, 1 << 14);
    const auto wide = minimum_stable_batch(Generator{1.5, 1.0}, 8, 1 << 14);
    REQUIRE((narrow && wide));
    CHECK(narrow->gpus == std::vector<int>{5, 3});
    CHECK(wide->gpus == std::vector<int>{5, 3});
    CHECK((narrow->samples >= 4 && narrow->samples <= 32));
    CHECK((wide->samples >= 64 && wide->samples <= 1024));
    // The guarantee: at most one in twenty new batches needs another split.
    Generator fresh{1.5, 1.0, 2};
    int others = 0;
    for (int i = 0; i < 1000; ++i)
      others += split_by_largest_remainder(fresh(wide->samples), 8) != wide->gpus ? 1 : 0;
    CHECK(others <= 50);
    // A mean on the edge between two splits is never stable: 4.5 of 8.
    CHECK(!minimum_stable_batch(Generator{9.0 / 7, 0.5}, 8, 1 << 12));
  }
}

}  // namespace polyphony
