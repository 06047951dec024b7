#include <doctest/doctest.h>

#include "shared/patience.h"

using namespace polyphony;

TEST_CASE("patience: looks of a tenth of a second add up to the limit") {
  Patience patience(Seconds(1), Seconds(100));
  for (int look = 1; look < 10; ++look) CHECK_FALSE(patience.over(Seconds(100 + 0.1 * look)));
  CHECK(patience.left().count() == doctest::Approx(0.1));
  CHECK(patience.over(Seconds(101.01)));
  patience.restart(Seconds(102));
  CHECK(patience.left() == Seconds(1));
}

// 20 s between two looks: whoever waits was paused itself, and has waited for half a second.
TEST_CASE("patience: a pause of the one who waits is no waiting") {
  Patience patience(Seconds(1), Seconds(0));
  CHECK_FALSE(patience.over(Seconds(20)));
  CHECK(patience.left() == Seconds(0.5));
  CHECK_FALSE(patience.over(Seconds(20.25)));
  CHECK(patience.over(Seconds(3600)));
}

TEST_CASE("patience: a clock that goes back is no waiting either") {
  Patience patience(Seconds(1), Seconds(10));
  CHECK_FALSE(patience.over(Seconds(5)));
  CHECK(patience.left() == Seconds(1));
}
