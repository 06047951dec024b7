// --vary: values, ranges, their combinations and overrides.
#include "sim/cli/variations.h"

#include <doctest/doctest.h>

#include "shared/error.h"

namespace polyphony::sim {

TEST_CASE("a list names its values, a range doubles and keeps the unit") {
  CHECK(parse_variation("layout.planner=none,entrain,dip").values ==
        std::vector<std::string>{"none", "entrain", "dip"});
  const Variation range = parse_variation("cluster.nic=100Gbps..800Gbps");
  CHECK(range.path == "cluster.nic");
  CHECK(range.values == std::vector<std::string>{"100Gbps", "200Gbps", "400Gbps", "800Gbps"});
  CHECK(parse_variation("nodes=3..20").values == std::vector<std::string>{"3", "6", "12"});
}

TEST_CASE("what is no variation is refused") {
  for (const char* text :
       {"cluster.nic", "=1,2", "cluster.nic=", "a=1Gbps..2GBps", "a=0..4", "a=x..4"})
    CHECK_THROWS_AS(parse_variation(text), InputError);
  CHECK(parse_variations({"a=1,2", "b=1,2,3"}, 6).size() == 2);
  CHECK_THROWS_AS(parse_variations({"a=1,2", "b=1,2,3"}, 5), InputError);
  CHECK(varies_layout({"cluster.nic=1,2", "layout.microbatches=4,8"}));
  CHECK_FALSE(varies_layout({"cluster.nic=1,2"}));
}

TEST_CASE("the value of the last variation changes fastest") {
  const std::vector<Variation> variations = parse_variations({"a.b=1,2", "c=x,y"});
  const auto all = combinations(variations);
  CHECK(all ==
        std::vector<std::vector<std::string>>{{"1", "x"}, {"1", "y"}, {"2", "x"}, {"2", "y"}});
  const std::vector<Override> overrides = overrides_of(variations, all[1]);
  REQUIRE(overrides.size() == 2);
  CHECK(overrides[0].path == std::vector<std::string>{"a", "b"});
  CHECK(overrides[0].value == "1");
  CHECK(overrides[1].text == "c=y");
  CHECK(combinations({}).size() == 1);  // one question, without changes
}

}  // namespace polyphony::sim
