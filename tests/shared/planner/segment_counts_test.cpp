#include "shared/planner/segment_counts.h"

#include <doctest/doctest.h>

namespace polyphony::tests {

TEST_SUITE("segment counts") {
  // Items per second: 4/2 = 2, 8/2.5 = 3.2, 12/3 = 4, 16/3.9 = 4.10…, 32/7.8 = 4.10…; 95 % of the
  // best are 3.897….
  TEST_CASE("the smallest size that reaches 95 % of the best rate") {
    const std::vector<SizeLatency> seen = {{4, Seconds(2)},
                                           {8, Seconds(2.5)},
                                           {12, Seconds(3)},
                                           {16, Seconds(3.9)},
                                           {32, Seconds(7.8)}};
    CHECK(efficient_size(seen) == 12);
    CHECK(efficient_size(seen, 1.0) == 16);
    CHECK(efficient_size(seen, 0.5) == 8);
  }

  TEST_CASE("segment counts are whole multiples of the fastest module's latency") {
    CHECK(segment_counts({Seconds(2), Seconds(5.9), Seconds(1)}) == std::vector<int>{2, 5, 1});
    CHECK(segment_counts({Seconds(0.3), Seconds(0.1)}) == std::vector<int>{3, 1});  // 2.999…
    CHECK(segment_counts({Seconds(0), Seconds(4)}) == std::vector<int>{1, 1});
  }

  TEST_CASE("sub-microbatches have as equal item counts as possible") {
    CHECK(sub_microbatches(25, 12) == std::vector<int>{8, 8, 9});
    CHECK(sub_microbatches(12, 12) == std::vector<int>{12});
    CHECK(sub_microbatches(0, 12).empty());
  }
}

}  // namespace polyphony::tests
