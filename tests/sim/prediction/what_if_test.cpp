// Shared uplinks in simulation, energy, and what would fit in memory.
#include <doctest/doctest.h>

#include "shared/check/check.h"
#include "shared/hardware/devices.h"
#include "shared/scenario/typical_batch.h"
#include "sim/prediction/fitting.h"
#include "tests/shared/support/scenario_files.h"
#include "tests/sim/runner/scene.h"

namespace polyphony::tests {
namespace {

// Four nodes of one rank under two leaves; ranks 0 and 1 send 4,000 bytes each to 2 and 3.
Scene exchange(double oversubscription) {
  Scene scene({0, 1, 2, 3});
  const MessageId a = scene.message(0, 2, Bytes(4000)), b = scene.message(1, 3, Bytes(4000));
  scene.send(0, {a});
  scene.send(1, {b});
  scene.receive(2, {a});
  scene.receive(3, {b});
  Cluster cluster;
  cluster.nodes = 4;
  cluster.node_link.rate = kNodeRate;
  cluster.fabric_link.rate = kFabricRate;
  cluster.leaf = {.nodes = 2, .oversubscription = oversubscription, .rails = 1};
  scene.costs().network = make_network(cluster, 4);
  return scene;
}

double makespan(Scene& scene) { return scene.play().timeline.makespan.count(); }

}  // namespace

TEST_CASE("an exchange between leaf switches is slower by the factor of oversubscription") {
  // 4,000 bytes at 1,000 B/s; uplinks of 2,000, 500 and 250 B/s for the two.
  Scene open = exchange(1), four = exchange(4), eight = exchange(8);
  CHECK(makespan(open) == doctest::Approx(4));
  CHECK(makespan(four) == doctest::Approx(16));
  CHECK(makespan(eight) == doctest::Approx(32));
}

TEST_CASE("ranks that share a NIC share its rate") {
  Scene scene({0, 0, 1, 1});
  const MessageId a = scene.message(0, 2, Bytes(1000)), b = scene.message(1, 3, Bytes(1000));
  scene.send(0, {a});
  scene.send(1, {b});
  scene.receive(2, {a});
  scene.receive(3, {b});
  Cluster cluster;
  cluster.nodes = 2;
  cluster.ranks_per_node = 2;
  cluster.nics = 1;
  cluster.node_link.rate = kNodeRate;
  cluster.fabric_link.rate = kFabricRate;
  cluster.degraded = {{.rank = 3, .nic = 0.5, .nic_of = {}}};
  scene.costs().network = make_network(cluster, 4);
  CHECK(makespan(scene) == doctest::Approx(4));  // 2,000 bytes at half of 1,000 B/s
}

TEST_CASE("a bus is shared by NIC and node traffic, a NIC by connections") {
  // Rank 0 sends 1,000 bytes to rank 1 of its node and 1,000 to rank 2 of the next.
  const auto seconds = [](BytesPerSecond bus, BytesPerSecond connection) {
    Scene scene({0, 1, 2, 3});
    const MessageId a = scene.message(0, 1, Bytes(1000)), b = scene.message(0, 2, Bytes(1000));
    scene.send(0, {a});
    scene.send(0, {b});
    scene.receive(1, {a});
    scene.receive(2, {b});
    Cluster cluster;
    cluster.nodes = cluster.ranks_per_node = 2;
    cluster.domain = 1;
    cluster.bus.rate = bus;
    cluster.connection = connection;
    cluster.fabric_link.rate = kFabricRate;
    scene.costs().network = make_network(cluster, 4);
    return makespan(scene);
  };
  CHECK(seconds(BytesPerSecond(4000), {}) == doctest::Approx(1));  // the NIC's 1,000 B/s
  CHECK(seconds(BytesPerSecond(1000), {}) == doctest::Approx(2));  // 2,000 bytes over the bus
  CHECK(seconds(BytesPerSecond(4000), BytesPerSecond(250)) == doctest::Approx(4));
}

TEST_CASE("energy: busy power while ops run, idle power the rest of the step") {
  Scenario scenario = test::scenario_at("scenarios/tiny.json");
  const HardwareProfile profile = *shipped_profile(scenario.cluster);
  const auto outcome = sim::predict(scenario, *scenario.layout, typical_batch(scenario), profile,
                                    sim::Predictor::estimate);
  const auto& prediction = std::get<sim::Prediction>(outcome);
  const double whole = prediction.step().count() * prediction.program.ranks;
  double busy = 0;
  for (std::size_t n = 0; n < prediction.compiled.nodes.size(); ++n)
    if (prediction.compiled.nodes[n].kind == NodeKind::compute)
      busy += prediction.costs.nodes[n].duration.count();
  REQUIRE(busy > 0);
  const auto joules = [&](double high, double low) {
    scenario.cluster.busy_power = Watts(high);
    scenario.cluster.idle_power = Watts(low);
    return sim::energy(scenario, prediction).value_or(Joules(-1)).value;
  };
  CHECK(joules(0, 0) == -1);  // the power is unknown
  CHECK(joules(100, 100) == doctest::Approx(100 * whole));
  CHECK(joules(100, 0) == doctest::Approx(100 * busy));
  CHECK(joules(300, 50) == doctest::Approx(300 * busy + 50 * (whole - busy)));
  scenario.cluster.dollars_per_rank_hour = 3600;
  const sim::Figures figures = sim::figures(scenario, prediction);
  CHECK(figures.dollars_per_step == doctest::Approx(whole));
  CHECK(figures.kilowatt_hours() == doctest::Approx((300 * busy + 50 * (whole - busy)) / 3.6e6));
  CHECK(figures.dollars_per_million_tokens ==
        doctest::Approx(whole / static_cast<double>(figures.tokens) * 1e6));
}

TEST_CASE("out of memory: the stage, its memory, and what would fit") {
  Scenario scenario = test::scenario_at("scenarios/tiny.json");
  const HardwareProfile profile = *shipped_profile(scenario.cluster);
  const Layout& layout = *scenario.layout;
  const auto predicted = [&](const Layout& of) {
    return std::get<sim::Prediction>(
        sim::predict(scenario, of, typical_batch(scenario), profile, sim::Predictor::estimate));
  };
  const sim::Prediction prediction = predicted(layout);
  const sim::Figures whole = sim::figures(scenario, prediction);
  // Every change is legal and different.
  const std::vector<sim::Change> changes =
      sim::nearest_changes(scenario, layout, prediction, whole.worst_rank);
  REQUIRE(changes.size() > 2);
  Bytes least = whole.peak_memory;
  for (const sim::Change& change : changes) {
    CAPTURE(change.what);
    CHECK_FALSE(check_layout(scenario, change.layout).has_value());
    CHECK_FALSE(change.what.empty());
    least = std::min(least, sim::figures(scenario, predicted(change.layout)).peak_memory);
  }
  REQUIRE(least < whole.peak_memory);
  // A device with one byte too little for the layout: the first smaller layout fits.
  scenario.cluster.device.memory = whole.peak_memory - Bytes(1);
  const sim::Fitting fitting =
      sim::find_fitting(scenario, layout, prediction, whole.worst_rank, profile);
  REQUIRE(fitting.fits.has_value());
  CHECK(sim::figures(scenario, predicted(fitting.fits->layout)).peak_memory == fitting.memory);
  CHECK(fitting.memory < whole.peak_memory);
  const std::string text = sim::out_of_memory_text(scenario, layout, prediction, profile);
  CHECK(text.starts_with("out of memory: " + whole.worst_stage + " needs "));
  CHECK(text.find("(parameters ") != std::string::npos);
  CHECK(text.find("; fits: " + fitting.fits->what + " (") != std::string::npos);
  // A device with one byte: nothing fits, and the smallest layout is named.
  scenario.cluster.device.memory = Bytes(1);
  const std::string hopeless = sim::out_of_memory_text(scenario, layout, prediction, profile);
  CHECK(hopeless.find(" similar layouts fits; the smallest, ") != std::string::npos);
}

}  // namespace polyphony::tests
