#include "exec/worker/prepare.h"

#include <doctest/doctest.h>

#include "exec/transport/in_process.h"
#include "exec/worker/train.h"
#include "shared/cost/cost_model.h"
#include "shared/graph/compile.h"
#include "shared/graph/memory.h"
#include "shared/hardware/devices.h"
#include "shared/lower/lower.h"
#include "shared/plan/plan.h"
#include "shared/split/planned_layout.h"
#include "shared/verify/verify.h"
#include "tests/exec/support/temp_folder.h"
#include "tests/shared/support/mutate.h"
#include "tests/shared/support/scenario_files.h"

using namespace polyphony;
using namespace polyphony::exec;
using testing::refusal;

namespace {

constexpr Bytes kMemory(std::int64_t{8} << 30);

LaunchEnv ranks(int world_size) {
  LaunchEnv launch;
  launch.source = "test";
  launch.world_size = launch.local_world_size = world_size;
  return launch;
}

std::variant<Prepared, Infeasible> prepare_file(const std::string& path, int world_size,
                                                Bytes memory = kMemory) {
  return prepare(path, test::file_text, ranks(world_size), "nowhere", memory);
}

}  // namespace

TEST_CASE("a valid scenario is prepared, a wrong number of ranks rejected") {
  const auto outcome = prepare_file("scenarios/tiny.json", 2);
  const auto* ready = std::get_if<Prepared>(&outcome);
  REQUIRE(ready);
  CHECK(ready->dataset->batch(0).samples.size() == 8);
  CHECK(refusal([] { prepare_file("scenarios/tiny.json", 3); }) ==
        "scenarios/tiny.json: /layout: the layout has 2 ranks but 3 were started (test) (start 2 "
        "ranks, or change the layout)");
  CHECK(refusal([] { prepare_file("scenarios/easy_vqa.json", 2); }).find("/layout: is missing") !=
        std::string::npos);
}

TEST_CASE("a run plans its layout once") {
  const std::uint64_t before = layouts_planned();
  const auto outcome = prepare_file("scenarios/tiny.json", 2);
  REQUIRE(std::holds_alternative<Prepared>(outcome));
  CHECK(layouts_planned() == before + 1);
  const Prepared& ready = std::get<Prepared>(outcome);
  CHECK(is_split(ready.scenario, *ready.scenario.layout));
  const Plan again = make_plan(ready.scenario, *ready.scenario.layout);
  REQUIRE(ready.plan.branches.size() == again.branches.size());
  for (std::size_t b = 0; b < again.branches.size(); ++b)
    CHECK((ready.plan.branches[b].stages == again.branches[b].stages));
}

TEST_CASE("lack of memory is reported before ranks connect") {
  // tiny.json: 65k parameters over two stages; 16 bytes each are 1 MB, so 1 MiB a rank holds one
  // stage with its activations, 64 KiB does not.
  CHECK(std::holds_alternative<Prepared>(prepare_file("scenarios/tiny.json", 2, Bytes(4 << 20))));
  const auto outcome = prepare_file("scenarios/tiny.json", 2, Bytes(64 << 10));
  const auto* no = std::get_if<Infeasible>(&outcome);
  REQUIRE(no);
  CHECK(no->reason.find("stage") != std::string::npos);
  CHECK(no->reason.find("this machine has 64.0 KiB for each of its ranks") != std::string::npos);
}

TEST_CASE(
    "memory is the Program's: a byte less than its peak is rejected, for any model and placement") {
  // tiny_all.json: five modules on mixed grids, for which there is no closed form.
  for (const char* path : {"scenarios/tiny.json", "scenarios/tiny_all.json",
                           "scenarios/tiny_colocated.json", "scenarios/tiny_non_colocated.json"}) {
    CAPTURE(path);
    const int ranks = world_size(*polyphony::test::scenario_at(path).layout);
    const auto outcome = prepare_file(path, ranks);
    const auto& [scenario, dataset, plan, room, need] = std::get<Prepared>(outcome);
    const Layout& layout = *scenario.layout;
    const Batch batch = dataset->batch(0);
    const Program program = lower(scenario, layout, plan, batch);
    const auto compiled = std::get<Compiled>(compile(program));
    const CostTable costs =
        price(program, compiled, scenario.cluster, *shipped_profile(scenario.cluster));
    Bytes peak{};
    const std::vector<RankMemory> foreseen =
        predict_memory(program, estimate(program, compiled, costs).timeline);
    REQUIRE(need.size() == foreseen.size());
    for (std::size_t r = 0; r < need.size(); ++r) {
      CHECK(need[r].peak == foreseen[r].peak);
      peak = std::max(peak, foreseen[r].peak);
    }
    CHECK(std::holds_alternative<Prepared>(prepare_file(path, ranks, peak)));
    CHECK(room.too_small_for(program).empty());
    CHECK_FALSE(
        RankRoom{room.cluster, room.profile, peak - Bytes(1)}.too_small_for(program).empty());
    const auto refused = prepare_file(path, ranks, peak - Bytes(1));
    REQUIRE(std::holds_alternative<Infeasible>(refused));
    CHECK(std::get<Infeasible>(refused).reason.find(" stage ") != std::string::npos);
  }
}

// Its planner's step may be smaller than the layout's own.
TEST_CASE("the schedule used for late plans must fit in memory, too") {
  auto outcome = prepare_file("scenarios/tiny_non_colocated.json", 3);
  auto& prepared = std::get<Prepared>(outcome);
  const Program own =
      lower(prepared.scenario, *prepared.scenario.layout,
            make_plan(prepared.scenario, *prepared.scenario.layout), prepared.dataset->batch(0));
  const auto fits = [&](Bytes memory) {
    prepared.room.memory = memory;
    return prepared.room.too_small_for(own).empty();
  };
  std::int64_t least = 0, enough = kMemory.value;  // the peak, by bisection
  while (enough - least > 1)
    (fits(Bytes((least + enough) / 2)) ? enough : least) = (least + enough) / 2;
  prepared.room.memory = Bytes(least);
  CHECK_FALSE(check_late_plan(prepared, "s.json").has_value());  // nothing is planned
  prepared.scenario.layout->planner = Planning::entrain;
  const auto no = check_late_plan(prepared, "s.json");
  REQUIRE(no.has_value());
  CHECK(no->reason.starts_with("s.json: /layout: if a plan is late, "));
  prepared.room.memory = Bytes(enough);
  CHECK_FALSE(check_late_plan(prepared, "s.json").has_value());
}

TEST_CASE("2,000 mutations of valid scenarios are prepared or rejected, never anything else") {
  int ready = 0, refused = 0, infeasible = 0;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    std::string path;
    const std::string text = test::mutated_scenario(i, path);
    const LoadText load = [&](const std::string& wanted) {
      return wanted == path ? text : test::file_text(wanted);
    };
    CAPTURE(i);
    CAPTURE(path);
    try {
      int world_size = 1;
      try {  // as many ranks as the layout has, so that later checks are reached
        if (const Scenario scenario = read_scenario(text, path, test::file_text); scenario.layout)
          world_size = polyphony::world_size(*scenario.layout);
      } catch (const InputError&) {
      }
      const auto outcome = prepare(path, load, ranks(world_size), "nowhere", kMemory);
      const auto* done = std::get_if<Prepared>(&outcome);
      if (!done) {
        ++infeasible;
        continue;
      }
      ++ready;
      const Layout& layout = *done->scenario.layout;
      const Program program =
          lower(done->scenario, layout, make_plan(done->scenario, layout), done->dataset->batch(0));
      CHECK(verify(program).empty());
    } catch (const InputError& error) {
      ++refused;
      CHECK(std::string(error.what()).find('\n') == std::string::npos);
    } catch (const std::exception& error) {
      FAIL_CHECK("not an InputError: " << error.what() << "\n" << text);
    }
  }
  MESSAGE(ready << " prepared, " << infeasible << " infeasible, " << refused << " refused");
  CHECK(ready > 50);
  CHECK(refused > 1000);
}

TEST_CASE(
    "one rank plans for all: training gives the same result as when every rank plans for itself") {
  const auto outcome = prepare_file("scenarios/tiny_non_colocated.json", 3);
  const auto* ready = std::get_if<Prepared>(&outcome);
  REQUIRE(ready);
  const auto loss = [&](Planner planner) {
    double last = 0;
    run_in_process(3, [&](Transport& transport) {
      TrainOptions options;
      options.steps = 4;
      options.planner = planner;
      const TrainResult result =
          train(transport, ready->scenario, *ready->scenario.layout, *ready->dataset, options);
      if (transport.rank() == Rank(0)) last = result.loss;
    });
    return last;
  };
  const double each = loss(Planner::each);
  CHECK(each > 0);
  CHECK(loss(Planner::first) == each);
}
