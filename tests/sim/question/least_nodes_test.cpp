#include "sim/question/least_nodes.h"

#include <doctest/doctest.h>

#include <set>

namespace polyphony::sim {

TEST_CASE("the least number of nodes is found in a logarithmic number of tries") {
  for (const int least : {1, 2, 3, 5, 7, 8, 9, 100, 1000, 1024}) {
    const LeastNodes found = least_nodes(1024, [&](int nodes) { return nodes >= least; });
    CHECK(found.nodes == least);
    CHECK(found.tried.size() <= 21);
    std::set<int> tried;
    for (const LeastNodes::Try& one : found.tried) {
      CHECK(one.fits == (one.nodes >= least));
      CHECK(tried.insert(one.nodes).second);
    }
    CHECK(tried.contains(least));
    CHECK((least == 1 || tried.contains(least - 1)));
  }
}

TEST_CASE("if the most nodes are too few, none is returned") {
  const LeastNodes none = least_nodes(100, [](int) { return false; });
  CHECK(none.nodes == 0);
  CHECK(none.most_tried() == 100);
  CHECK(doubled(3, 2) == std::vector<int>{3, 6, 12});
}

}  // namespace polyphony::sim
