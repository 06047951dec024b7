// What measured steps say about other layouts of the same model: closed forms of one and two
// measurements.
#include "shared/chance/misses.h"

#include <doctest/doctest.h>

#include <cmath>

#include "shared/chance/belief.h"
#include "shared/hardware/hardware.h"

namespace polyphony {
namespace {

constexpr double kResidual = 0.05, kNoise = 0.01, kApart = 0.03;

Scenario scenario_of(int hidden, int batch = 32) {
  Module module;
  module.name = "language";
  module.layers = 2;
  module.hidden = hidden;
  module.heads = module.kv_heads = 2;
  module.head_dim = 4;
  module.ffn = 16;
  module.vocab = 32;
  Scenario scenario;
  scenario.model = {{module}, {}};
  scenario.data.global_batch = batch;
  return scenario;
}
Layout layout_of(int microbatches, int tp = 1) {
  Layout layout;
  layout.modules.resize(1);
  layout.modules[0].ranks = 8;
  layout.modules[0].tp = tp;
  layout.microbatches = microbatches;
  return layout;
}
Certainty knowing(const std::vector<std::pair<int, double>>& misses) {
  Certainty certainty;
  certainty.residual = kResidual;
  certainty.layout_error = kApart;
  certainty.errors = {{{"gemm_efficiency", 0.1}}};
  for (const auto& [microbatches, miss] : misses)
    certainty.misses.push_back(
        {"log", measured_text(scenario_of(8)), layout_of(microbatches), miss, kNoise, {0.08}});
  return certainty;
}

constexpr double kSquare = kResidual * kResidual, kOwn = kNoise * kNoise;

}  // namespace

// w = R² / (R² + noise²); the rest of R² is left.
TEST_CASE("the measured layout is predicted as it was measured, to the measurement's noise") {
  const Certainty certainty = knowing({{4, 0.2}});
  const MissAt miss = Misses(certainty, scenario_of(8)).at(layout_of(4));
  const double weight = kSquare / (kSquare + kOwn);
  CHECK(miss.weights.at(0) == doctest::Approx(weight));
  CHECK(miss.mean == doctest::Approx(0.2 * weight));
  CHECK(miss.left == doctest::Approx(std::sqrt(kSquare * (1 - weight))));
  CHECK(miss.left < kNoise);
  CHECK(Misses(certainty, scenario_of(8)).factor(layout_of(4)) ==
        doctest::Approx(std::exp(0.2 * weight)));
}

// Twice the microbatches are one doubling: own² = 0.03². Tensor parallelism of 4 are two, and
// another two of data parallelism.
TEST_CASE("the more a layout differs, the less of the miss is carried over to it") {
  const Certainty certainty = knowing({{4, 0.2}});
  const Misses misses(certainty, scenario_of(8));
  const double near = std::exp(-0.5 * kApart * kApart / kSquare),
               far = std::exp(-0.5 * 4 * kApart * kApart / kSquare),
               weight = kSquare / (kSquare + kOwn);
  CHECK(misses.at(layout_of(8)).mean == doctest::Approx(0.2 * weight * near));
  CHECK(misses.at(layout_of(4, 4)).mean == doctest::Approx(0.2 * weight * far));
  CHECK(misses.at(layout_of(8)).left ==
        doctest::Approx(std::sqrt(kSquare - near * near * kSquare * weight)));
}

TEST_CASE("two measurements of one layout count alike") {
  // (K⁻¹k)_i = R² / (2R² + noise²).
  const Certainty certainty = knowing({{4, 0.1}, {4, 0.3}});
  const MissAt miss = Misses(certainty, scenario_of(8)).at(layout_of(4));
  const double each = kSquare / (2 * kSquare + kOwn);
  CHECK(miss.weights.at(0) == doctest::Approx(each));
  CHECK(miss.weights.at(1) == doctest::Approx(each));
  CHECK(miss.mean == doctest::Approx(0.4 * each));
}

// (ν + m² / (R² + noise²)) / (ν + 1) times the variance.
TEST_CASE("a miss larger than the residual makes what is left wider") {
  Certainty certainty = knowing({{4, 0.2}});
  const double normal = Misses(certainty, scenario_of(8)).at(layout_of(8)).left;
  certainty.freedom = 4;
  const double wider = (4 + 0.04 / (kSquare + kOwn)) / 5;
  CHECK(Misses(certainty, scenario_of(8)).at(layout_of(8)).left ==
        doctest::Approx(normal * std::sqrt(wider)));
}

TEST_CASE("other models and data, and profiles without a residual, know no misses") {
  Certainty certainty = knowing({{4, 0.2}});
  CHECK(Misses(certainty, scenario_of(8)).any());
  CHECK_FALSE(Misses(certainty, scenario_of(8, 64)).any());
  CHECK_FALSE(Misses(certainty, scenario_of(16)).any());
  CHECK(Misses(certainty, scenario_of(16)).factor(layout_of(4)) == 1);
  certainty.residual.reset();
  CHECK_FALSE(Misses(certainty, scenario_of(8)).any());
  CHECK_FALSE(Misses(Certainty{}, scenario_of(8)).any());
}

TEST_CASE("no layout has a smaller factor than the least one") {
  for (const auto& misses : {std::vector<std::pair<int, double>>{{4, -0.2}},
                             {{4, 0.2}},
                             {{4, 0.2}, {8, -0.3}, {64, 0.1}}}) {
    const Certainty certainty = knowing(misses);
    const Misses known(certainty, scenario_of(8));
    CHECK(known.least_factor() <= 1);
    for (const int microbatches : {1, 2, 4, 8, 16, 64, 256})
      for (const int tp : {1, 2, 8})
        CHECK(known.factor(layout_of(microbatches, tp)) >= known.least_factor());
  }
}

// The error of 0.08 is in the measurement, too: of an effect of 0.1 on this step, 0.08 w is known.
TEST_CASE("an error that also moves the measured step is less uncertain") {
  HardwareProfile profile;
  profile.certainty = knowing({{4, 0.2}});
  const Belief belief = make_belief(Seconds(1), {0.1}, profile, scenario_of(8), layout_of(4));
  CHECK(belief.effects.at(0) == doctest::Approx(0.1 - 0.08 * kSquare / (kSquare + kOwn)));
  const Belief other = make_belief(Seconds(1), {0.1}, profile, scenario_of(16), layout_of(4));
  CHECK(other.effects.at(0) == 0.1);
  CHECK(other.residual == kResidual);
}

}  // namespace polyphony
