// The learning rate of each step, at points that can be computed by hand.
#include "shared/scenario/learning_rate.h"

#include <doctest/doctest.h>

#include <cmath>

namespace polyphony {
namespace {

Training training(RateDecay decay) {
  Training t;
  t.learning_rate = 1;
  t.min_learning_rate = 0.2;
  t.warmup_steps = 4;
  t.steps = 24;
  t.decay = decay;
  return t;
}

}  // namespace

TEST_SUITE("learning rate") {
  TEST_CASE("warm-up is the same for all: step s of w has (s + 1) / w") {
    for (const RateDecay decay :
         {RateDecay::constant, RateDecay::linear, RateDecay::cosine, RateDecay::wsd}) {
      for (int step = 0; step < 4; ++step)
        CHECK(learning_rate(training(decay), step) == doctest::Approx((step + 1) / 4.0));
      CHECK(learning_rate(training(decay), 4) == 1);
    }
  }

  TEST_CASE("linear and cosine meet in the middle and end at the least rate") {
    for (const RateDecay decay : {RateDecay::linear, RateDecay::cosine}) {
      CHECK(learning_rate(training(decay), 14) == doctest::Approx(0.6));
      CHECK(learning_rate(training(decay), 24) == doctest::Approx(0.2));
      CHECK(learning_rate(training(decay), 1000) == doctest::Approx(0.2));
    }
    CHECK(learning_rate(training(RateDecay::linear), 9) == doctest::Approx(0.8));
    CHECK(learning_rate(training(RateDecay::cosine), 9) ==
          doctest::Approx(0.2 + 0.8 * (1 + std::sqrt(0.5)) / 2));
    CHECK(learning_rate(training(RateDecay::constant), 1000) == 1);
  }

  TEST_CASE("wsd stays, then decays over its last steps") {
    Training t = training(RateDecay::wsd);
    t.wsd_decay_steps = 8;
    CHECK(learning_rate(t, 16) == 1);
    CHECK(learning_rate(t, 20) == doctest::Approx(0.6));
    CHECK(learning_rate(t, 24) == doctest::Approx(0.2));
    t.wsd_decay_steps = 0;  // a tenth of 24, rounded down
    CHECK(learning_rate(t, 22) == 1);
    CHECK(learning_rate(t, 23) == doctest::Approx(0.6));
    t.decay_steps = 12;
    CHECK(learning_rate(t, 12) == doctest::Approx(0.2));
  }

  TEST_CASE("factors are 1 where none is given") {
    Training t;
    CHECK(rate_factor(t, ModuleId(3)) == 1);
    t.rate_factors = {0.5, 0};
    CHECK(rate_factor(t, ModuleId(0)) == 0.5);
    CHECK(rate_factor(t, ModuleId(1)) == 0);
  }
}

}  // namespace polyphony
