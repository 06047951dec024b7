// What measured steps say about other layouts of the same model: closed forms of one and two
// measurements.
#include "shared/chance/misses.h"

#include <doctest/doctest.h>

#include <cmath>

#include "shared/chance/belief.h"
#include "shared/cost/paced_costs.h"
#include "shared/hardware/hardware.h"
#include "shared/random.h"

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
  Scenario frozen = scenario_of(8), other_cluster = scenario_of(8);
  frozen.model.modules[0].trainable = Trainable::frozen;
  other_cluster.cluster.fabric_link.rate = BytesPerSecond(1e9);
  CHECK_FALSE(Misses(certainty, frozen).any());
  CHECK_FALSE(Misses(certainty, other_cluster).any());
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

// The distance of layouts is a sum of differences, so that K stays positive definite however many
// layouts of several modules were measured; with the module that differs most it did not.
TEST_CASE("many measured layouts of two modules") {
  Certainty certainty;
  certainty.residual = 0.2338;
  certainty.layout_error = 0.0578;
  certainty.tensor_error = 0.0462;
  certainty.freedom = 5;
  std::vector<Layout> layouts;
  for (std::uint64_t i = 0; i < 60; ++i) {
    const auto bits = [&](std::uint64_t part, int most) {
      return 1 << static_cast<int>(random_bits(7 + part, i) % static_cast<std::uint64_t>(most));
    };
    Layout layout;
    layout.microbatches = bits(0, 4);
    for (std::uint64_t m = 0; m < 2; ++m) {
      ModuleLayout& module = layout.modules.emplace_back();
      module.tp = bits(10 * m + 1, 3);
      module.pp = bits(10 * m + 2, 2);
      module.ranks = 8;
      module.recompute = bits(10 * m + 3, 2) == 1 ? Recompute::none : Recompute::full;
    }
    layouts.push_back(layout);
    certainty.misses.push_back({"log", "m", layout, i % 2 == 0 ? 0.2 : -0.2, 0.01, {}});
  }
  const Misses misses(certainty, std::string("m"));
  for (const Layout& layout : layouts) {
    CHECK(misses.factor(layout) >= misses.least_factor());
    CHECK(misses.at(layout).left >= 0);
  }
}

TEST_CASE("a layout of another number of modules is another one") {
  Certainty certainty = knowing({{4, 0.2}});
  Layout two = layout_of(4);
  two.modules.resize(2);
  CHECK(Misses(certainty, scenario_of(8)).at(two).mean == 0);
}

TEST_CASE("times are scaled: durations and delays by the factor, rates by its inverse") {
  CostTable costs;
  costs.nodes = {{Seconds(2), Seconds(1), {}}};
  for (BytesPerSecond* rate :
       {&costs.network.node_rate, &costs.network.fabric_rate, &costs.network.bus_rate,
        &costs.network.connection, &costs.network.leaf_rate, &costs.network.host_rate,
        &costs.network.host_memory_rate})
    *rate = BytesPerSecond(10);
  scale_times(costs, 2);
  CHECK(costs.nodes[0].duration == Seconds(4));
  CHECK(costs.nodes[0].delay == Seconds(2));
  for (const BytesPerSecond rate :
       {costs.network.node_rate, costs.network.fabric_rate, costs.network.bus_rate,
        costs.network.connection, costs.network.leaf_rate, costs.network.host_rate,
        costs.network.host_memory_rate})
    CHECK(rate.value == 5);
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
