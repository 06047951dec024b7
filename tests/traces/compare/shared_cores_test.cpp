// Other programs on the machine: ranks that waited for a core are reported, and judged by processor
// time.
#include "traces/compare/shared_cores.h"

#include <doctest/doctest.h>

#include <cmath>

#include "shared/hardware/devices.h"
#include "tests/traces/sample_run.h"
#include "traces/calibrate/calibrate.h"
#include "traces/compare/compare.h"
#include "traces/format/chrome_json.h"

namespace polyphony::traces {
namespace {

HardwareProfile machine() {
  HardwareProfile profile = *find_profile("cpu-core-roofline");
  profile.corrections.clear();
  return profile;
}

Program pipeline() { return test::varied_pipeline({.stages = 2, .microbatches = 6}); }

// The step of the machine if every compute op of `rank` lasts `factor` times its recorded processor
// time.
Timeline beside_another(const Program& program, const Cluster& cluster, Rank rank, double factor) {
  const Compiled compiled = hand_made::compile_sound(program);
  CostTable costs = price(program, compiled, cluster, machine());
  std::vector<Seconds> alone(program.ops.size(), Seconds(-1));
  for (std::size_t n = 0; n < compiled.nodes.size(); ++n) {
    const Node& node = compiled.nodes[n];
    if (node.kind != NodeKind::compute) continue;
    alone[node.what] = costs.nodes[n].duration;
    if (program.rank_of(program.ops[node.what]) == rank) costs.nodes[n].duration *= factor;
  }
  Timeline timeline = estimate(program, compiled, costs).timeline;
  for (OpTime& time : timeline.ops) time.processor = alone[time.op.value];
  return timeline;
}

}  // namespace

TEST_SUITE("shared cores") {
  TEST_CASE("a rank that shares its core with a program of equal load is reported") {
    const Program program = pipeline();
    const Cluster cluster = test::one_node(program, machine());
    const std::vector<Timeline> quiet(3, beside_another(program, cluster, Rank(1), 1));
    CHECK(find_shared_cores(program, quiet).empty());
    const std::vector<Timeline> busy(3, beside_another(program, cluster, Rank(1), 2));
    const std::vector<CoreShare> shared = find_shared_cores(program, busy);
    REQUIRE(shared.size() == 1);
    CHECK(shared[0].rank == Rank(1));
    CHECK(shared[0].ratio() == doctest::Approx(2));
    CHECK(describe(shared) == "rank 1 waited for its core 50 % of the time that it computed");
    const Timeline predicted = test::timeline_of(program, cluster, machine());
    CHECK(compare({{program, predicted, busy[0]}}).shared_cores.size() == 1);
    CHECK(compare({{program, predicted, quiet[0]}}).shared_cores.empty());
  }

  TEST_CASE("without processor times no rank is reported") {
    const Program program = pipeline();
    const Cluster cluster = test::one_node(program, machine());
    CHECK(find_shared_cores(program, {test::timeline_of(program, cluster, machine())}).empty());
  }

  // Half of rank 1's recorded time belonged to another program: if it counted, its layers would be
  // fitted as twice as slow.
  TEST_CASE("a calibration uses the processor time of such a rank") {
    const Program program = pipeline();
    const Cluster cluster = test::one_node(program, machine());
    const auto fitted = [&](double factor) {
      const std::vector<Timeline> steps(3, beside_another(program, cluster, Rank(1), factor));
      return calibrate(machine(), {{"run", &program, cluster, steps}}, "fitted", "", "");
    };
    const Calibration quiet = fitted(1), busy = fitted(2);
    CHECK(quiet.runs[0].shared_cores.empty());
    REQUIRE(busy.runs[0].shared_cores.size() == 1);
    for (const auto& [key, value] : quiet.profile.corrections) {
      CAPTURE(static_cast<int>(key.first));
      CHECK(busy.profile.corrections.at(key) == doctest::Approx(value).epsilon(1e-3));
    }
  }

  // The error of a delayed step is not an error of the profile.
  TEST_CASE("a disturbed run does not widen the stated error if another run was undisturbed") {
    const Program program = pipeline();
    const Cluster cluster = test::one_node(program, machine());
    const std::vector<Timeline> quiet(3, beside_another(program, cluster, Rank(1), 1)),
        busy(3, beside_another(program, cluster, Rank(1), 3));
    const Calibration both = calibrate(
        machine(), {{"quiet", &program, cluster, quiet}, {"busy", &program, cluster, busy}},
        "fitted", "", "");
    CHECK(std::abs(both.runs[1].after) > 0.1);
    CHECK(both.profile.step_error < 0.05);
    const Calibration alone =
        calibrate(machine(), {{"busy", &program, cluster, busy}}, "fitted", "", "");
    CHECK(alone.profile.step_error > 0.1);
  }

  TEST_CASE(
      "processor times are written to trace files and read back, and files without them are read") {
    const Program program = pipeline();
    const Cluster cluster = test::one_node(program, machine());
    Timeline timeline = beside_another(program, cluster, Rank(0), 2);
    timeline.ops[0].processor = Seconds(-1);
    const std::string text = write_trace(program, timeline, TraceKind::measured, 3);
    const Timeline again = read_trace(text, "trace.json", program).timeline;
    for (std::size_t i = 0; i < timeline.ops.size(); ++i) {
      const Seconds written = timeline.ops[i].processor, read = again.ops[i].processor;
      const bool kept = written.count() < 0 ? read.count() < 0
                                            : std::abs((read - written).count()) <=
                                                  0.5001e-9;  // integer nanoseconds
      CHECK(kept);
    }
  }
}

}  // namespace polyphony::traces
