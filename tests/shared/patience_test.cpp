#include <doctest/doctest.h>

#include "shared/patience.h"

using namespace polyphony;

TEST_CASE("timeout: calls every tenth of a second add up to the limit") {
  Patience patience(Seconds(1), Seconds(100));
  for (int look = 1; look < 10; ++look) CHECK_FALSE(patience.over(Seconds(100 + 0.1 * look)));
  CHECK(patience.left().count() == doctest::Approx(0.1));
  CHECK(patience.over(Seconds(101.01)));
  patience.restart(Seconds(102));
  CHECK(patience.left() == Seconds(1));
}

// 20 s between two calls: the waiting process itself was suspended, so half a second counts.
TEST_CASE("timeout: a suspension of the waiting process does not count") {
  Patience patience(Seconds(1), Seconds(0));
  CHECK_FALSE(patience.over(Seconds(20)));
  CHECK(patience.left() == Seconds(0.5));
  CHECK_FALSE(patience.over(Seconds(20.25)));
  CHECK(patience.over(Seconds(3600)));
}

TEST_CASE("timeout: a clock that goes back does not count") {
  Patience patience(Seconds(1), Seconds(10));
  CHECK_FALSE(patience.over(Seconds(5)));
  CHECK(patience.left() == Seconds(1));
}
