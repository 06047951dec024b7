// Placing actions on ranks: compared with hand calculations, timetables of fixed orders, and
// Programs.
#include "shared/planner/list_schedule.h"

#include <doctest/doctest.h>

#include "shared/cost/cost_model.h"
#include "shared/graph/compile.h"
#include "shared/lower/lower.h"
#include "shared/planner/placed_orders.h"
#include "shared/planner/timetable.h"
#include "shared/scenario/typical_batch.h"
#include "shared/scenario_io/scenario_json.h"
#include "shared/scenario_io/scenario_profile.h"
#include "shared/schedule/schedule.h"
#include "shared/verify/verify.h"
#include "tests/shared/support/random_step_costs.h"
#include "tests/shared/support/scenario_files.h"

namespace polyphony::tests {
namespace {

ListSchedule list_schedule(const StageGraph& graph) {
  ListSchedule placed;
  ListScheduler(graph).run(keys_in_turn(graph), placed);
  return placed;
}
Timetable played(const StepCosts& costs, const std::vector<Actions>& orders) {
  auto outcome = timetable(costs, orders);
  if (const auto* no = std::get_if<Infeasible>(&outcome)) FAIL(no->reason);
  return std::get<Timetable>(outcome);
}
std::string refusal(const StepCosts& costs, const std::vector<Actions>& orders) {
  const auto outcome = timetable(costs, orders);
  REQUIRE(std::holds_alternative<Infeasible>(outcome));
  return std::get<Infeasible>(outcome).reason;
}

// `stages` stages on as many ranks; forward 1 s, backward 2 s, 1 byte saved.
StepCosts chain(int stages, int microbatches, Bytes capacity) {
  StepCosts costs{stages, microbatches, {BranchCosts{"language", {}, {}, {}}}, {}};
  BranchCosts& branch = costs.branches[0];
  for (int k = 0; k < microbatches; ++k) branch.microbatch_of.push_back(k);
  for (int s = 0; s < stages; ++s) branch.rank_of_stage.push_back(s);
  branch.costs.assign(static_cast<std::size_t>(stages * microbatches),
                      {Seconds(1), Seconds(1), Seconds(1), Bytes(1)});
  costs.capacity.assign(static_cast<std::size_t>(stages), capacity);
  return costs;
}

}  // namespace

TEST_SUITE("list schedule") {
  TEST_CASE("the number of receive slots is that of StepPlan") {
    CHECK(StepCosts{}.receive_slots == StepPlan{}.receive_slots);
  }

  // Two ranks, three microbatches. Rank 0 runs F0 at 0, F1 at 1 and, as no backward is ready before
  // 4, F2 at 2. Rank 1: F0 at 1, then B0 and F1 are ready at 2: after a forward the backward, to 4;
  // then F1 to 5, B1 to 7, F2 to 8, B2 to 10. Rank 0: B0 4 to 6, B1 7 to 9, B2 10 to 12.
  TEST_CASE("forwards and backwards alternate: 12 s by hand") {
    const StageGraph graph(chain(2, 3, Bytes(3)), {0, 1, 2});
    const ListSchedule placed = list_schedule(graph);
    CHECK(placed.start[kForward] == std::vector<double>{0, 1, 2, 1, 4, 7});
    CHECK(placed.start[kBackward] == std::vector<double>{4, 7, 10, 2, 5, 8});
    CHECK(placed.makespan == 12);
  }

  // Split backwards: rank 1 changes from F0 to I0 at 2, then F1, I1, F2, I2, and starts its weight
  // parts at 7, since nothing before had to wait: 10. Rank 0 has I0 at 3, I1 at 5,
  // I2 at 7 and a weight part between them and at the end. Rank 1 cannot end before 1 + 9.
  TEST_CASE("weight parts fill: 10 s by hand") {
    const StageGraph graph(chain(2, 3, Bytes(3)), {0, 1, 2}, true);
    const ListSchedule placed = list_schedule(graph);
    CHECK(placed.start[kForward] == std::vector<double>{0, 1, 2, 1, 3, 5});
    CHECK(placed.start[kBackward] == std::vector<double>{3, 5, 7, 2, 4, 6});
    CHECK(placed.start[kWeight] == std::vector<double>{4, 6, 8, 7, 8, 9});
    CHECK(placed.makespan == 10);
    // Keys that place each weight part right after its input part: like whole backwards, except
    // that rank 0 receives the last gradient 1 s earlier.
    Keys soon = keys_in_turn(graph);
    soon.alternate = false;
    soon.of[kWeight] = std::vector<double>(6, -1);
    ListSchedule eager;
    REQUIRE(ListScheduler(graph).run(soon, eager));
    CHECK(eager.start[kWeight] == std::vector<double>{4, 7, 10, 3, 6, 9});
    CHECK(eager.makespan == 11);
  }

  // Activations are held to the end of the weight part: with memory for one microbatch, rank 0
  // starts the next microbatch after F, rank 1's F and I, I and W: 3·5.
  TEST_CASE("activations are held until the weight part ends: 15 s by hand") {
    CHECK(list_schedule(StageGraph(chain(2, 3, Bytes(1)), {0, 1, 2}, true)).makespan == 15);
  }

  // With memory for one microbatch, each waits for the one before: 3·(2 + 4).
  TEST_CASE("a rank whose memory is full waits: 18 s by hand; a rank that is too small is named") {
    CHECK(list_schedule(StageGraph(chain(2, 3, Bytes(1)), {0, 1, 2})).makespan == 18);
    CHECK(too_large(chain(2, 3, Bytes(1))).empty());
    CHECK(too_large(chain(2, 3, Bytes(0))) ==
          "microbatch 0 saves 1 bytes of activations on rank 0, which has room for 0");
  }

  TEST_CASE(
      "500 random steps: what the scheduler believes is what its orders take, within memory") {
    for (std::uint64_t seed = 0; seed < 500; ++seed) {
      CAPTURE(seed);
      const StepCosts costs = test::random_step_costs(seed);
      REQUIRE(too_large(costs).empty());
      for (const int way : {0, 1, 2, 3}) {
        const bool alternate = way % 2 == 0;
        const StageGraph graph(costs, microbatches_in_order(costs), way / 2 == 1);
        Keys keys = keys_in_turn(graph);
        keys.alternate = alternate;
        ListSchedule placed, followed;
        ListScheduler scheduler(graph);
        REQUIRE(scheduler.run(keys, placed));
        const Timetable table = played(costs, actions_of(graph, placed.orders));
        CHECK(table.makespan.count() == doctest::Approx(placed.makespan).epsilon(1e-12));
        for (std::size_t r = 0; r < costs.capacity.size(); ++r)
          CHECK(table.peak[r] <= costs.capacity[r]);
        REQUIRE(scheduler.follow(placed.orders, followed));
        CHECK(placed_of(graph, actions_of(graph, placed.orders)).has_value());
        CHECK(followed.start == placed.start);
        CHECK_FALSE(scheduler.run(keys, followed, placed.makespan));
      }
    }
  }

  TEST_CASE("the mirror of the mirror is the step, and its placements fit in memory") {
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
      CAPTURE(seed);
      const StepCosts costs = test::random_step_costs(seed);
      for (const bool apart : {false, true}) {
        const StageGraph graph(costs, microbatches_in_order(costs), apart);
        const StageGraph mirror = graph.mirrored();
        CHECK(list_schedule(mirror.mirrored()).start == list_schedule(graph).start);
        ListSchedule back = list_schedule(mirror), there;
        CHECK(back.makespan < 1e9);
        turn_round(mirror, back.orders);  // a placement in the mirror also runs and fits forwards
        REQUIRE(ListScheduler(graph).follow(back.orders, there));
        for (std::size_t r = 0; r < back.orders.size(); ++r) CHECK(fits(graph, r, back.orders[r]));
      }
    }
  }

  // A model of two abstract modules on two disjoint pipelines, each stage on its own rank: the
  // estimate of the Program with these orders equals the scheduler's makespan, with links that take
  // time.
  TEST_CASE("the estimate of a Program with these orders equals the makespan") {
    const Scenario scenario = read_scenario(R"({"polyphony": 1, "model": {
          "vision": {"layers": 2, "output": "2MB", "layer_times": {"forward": "10us", "backward_input": "5us", "backward_weight": "20us"}},
          "language": {"from": "vision", "layers": 6, "output": "2MB",
                       "layer_times": {"forward": "20us", "backward_input": "10us", "backward_weight": "20us"}}},
        "cluster": {"node": {"device": "H100", "ranks": 5}}, "data": {"global_batch": 12},
        "layout": {"placement": "non-colocated", "vision": {"ranks": 2, "pp": 2}, "microbatches": 12,
                   "schedule": "interleaved", "language": {"ranks": 3, "pp": 3, "vpp": 2}}})",
                                            "s.json", test::file_text);
    HardwareProfile profile = scenario_profile(scenario, test::file_text);
    profile.op_overhead = profile.optimizer_overhead = Seconds(0);
    const Layout& layout = *scenario.layout;
    const Batch batch = typical_batch(scenario);
    const Plan plan = make_plan(scenario, layout);
    StepPlan step = make_step_plan(scenario, layout, plan, batch);

    const auto estimated = [&] {
      const Program program = lower(scenario, layout, plan, step, batch);
      REQUIRE(verify(program).empty());
      const auto compiled = compile(program);
      REQUIRE(std::holds_alternative<Compiled>(compiled));
      const auto& graph = std::get<Compiled>(compiled);
      const CostTable table = price(program, graph, scenario.cluster, profile);
      std::pair<Seconds, Seconds> messages{1, 0};  // of the image's tokens, of all tokens
      for (std::uint32_t n = 0; n < graph.nodes.size(); ++n)
        if (graph.nodes[n].kind == NodeKind::message)
          messages = {std::min(messages.first, unshared_time(table, n)),
                      std::max(messages.second, unshared_time(table, n))};
      Seconds end{};  // before the tail, whose all-reduce of scalars is not an action
      const Timeline timeline = estimate(program, graph, table).timeline;
      for (std::size_t op = 0; op < program.ops.size(); ++op)
        if (std::holds_alternative<Compute>(program.ops[op].what))
          end = std::max(end, timeline.ops[op].end);
      return std::pair(end, messages);
    };
    const auto [image, all] = estimated().second;
    CHECK(image > Seconds(1e-5));
    CHECK(all > image);
    StepCosts costs{5, 12, {}, {}};
    for (const Branch& of : plan.branches) {
      const bool vision = costs.branches.empty();
      BranchCosts branch{vision ? "vision" : "language", {}, {}, {}};
      for (const int p : of.rank_of_stage) branch.rank_of_stage.push_back(of.grid.first_rank + p);
      for (int k = 0; k < 12; ++k) branch.microbatch_of.push_back(k);
      const StageCost cost = vision
                                 ? StageCost{Seconds(1e-5), Seconds(5e-6), Seconds(2e-5), {}, image}
                                 : StageCost{Seconds(2e-5), Seconds(1e-5), Seconds(2e-5), {}, all};
      branch.costs.assign(of.stages.size() * 12, cost);
      if (vision) {
        branch.feeds = 1;
        for (int k = 0; k < 12; ++k)  // its first stage receives no message
          branch.costs[static_cast<std::size_t>(k)].input = Seconds(0);
      }
      costs.branches.push_back(branch);
    }
    for (const int way : {0, 1, 2, 3}) {
      const StageGraph graph(costs, {3, 1, 0, 2, 4, 5, 6, 11, 8, 9, 10, 7}, way / 2 == 1);
      Keys keys = keys_in_turn(graph);
      keys.alternate = way % 2 == 0;
      ListSchedule placed;
      REQUIRE(ListScheduler(graph).run(keys, placed));
      step.orders = actions_of(graph, placed.orders);
      step.order_of = {0, 1, 2, 3, 4};
      CHECK(check_actions(scenario.model, plan, step).empty());
      CHECK(estimated().first.count() == doctest::Approx(placed.makespan).epsilon(1e-9));
    }
  }
}

TEST_SUITE("timetable") {
  // (m + p − 1)(f + b) for both, with 1 and m microbatches in flight on the last and first rank.
  TEST_CASE("1F1B and GPipe of equal stages match the closed form") {
    const StepCosts costs = chain(4, 8, Bytes(8));
    for (const ScheduleKind kind : {ScheduleKind::one_f_one_b, ScheduleKind::gpipe}) {
      std::vector<Actions> orders;
      for (int p = 0; p < 4; ++p) orders.push_back(schedule(kind).order({4, 1, 8}, p));
      const Timetable table = played(costs, orders);
      CHECK(table.makespan == Seconds(33));
      CHECK(table.busy == std::vector<Seconds>(4, Seconds(24)));
      CHECK(table.peak[3] == Bytes(kind == ScheduleKind::gpipe ? 8 : 1));
      CHECK(table.peak[0] == Bytes(kind == ScheduleKind::gpipe ? 8 : 4));
    }
  }

  TEST_CASE("orders that cannot run are rejected with the action's name") {
    const auto line = [](const std::string& kinds, int stage, std::vector<int> works) {
      Actions actions;
      for (std::size_t i = 0; i < works.size(); ++i)
        actions.push_back(make_action(kinds[i] == 'F' ? ActionKind::forward : ActionKind::backward,
                                      stage, works[i]));
      return actions;
    };
    const StepCosts costs = chain(2, 2, Bytes(2));
    const Actions good = line("FFBB", 0, {0, 1, 0, 1});
    CHECK(played(costs, {good, line("FBFB", 1, {0, 0, 1, 1})}).makespan == Seconds(9));
    CHECK(refusal(costs, {good, line("FBF", 1, {0, 0, 1})}) ==
          "no rank runs B microbatch 1 of stage 1 of language");
    CHECK(refusal(costs, {good, line("FBFBF", 1, {0, 0, 1, 1, 0})}) ==
          "rank 1: F microbatch 0 of stage 1 of language runs twice");
    CHECK(refusal(costs, {good, line("FBFB", 0, {0, 0, 1, 1})}) ==
          "rank 1: F microbatch 0 of stage 0 of language belongs to rank 0");
    CHECK(refusal(costs, {good, line("FBFB", 1, {0, 0, 2, 2})}) ==
          "rank 1: F microbatch 2 of stage 1 of language does not exist: the branch has 2 stages "
          "and 2 microbatches");
    CHECK(refusal(costs, {good, line("FFBB", 1, {1, 0, 0, 1})}) ==
          "stage 0 of language sends microbatches in a different order than stage 1 of language "
          "receives "
          "them");
    CHECK(
        refusal(costs, {line("FBFB", 0, {0, 0, 1, 1}), line("FFBB", 1, {0, 1, 0, 1})}) ==
        "actions wait for each other: rank 0 for B microbatch 0 of stage 0 of language, rank 1 for "
        "F microbatch 1 of stage 1 of language");
    // A third rank waits, too, but no rank waits for it.
    const Actions in_turn = line("FBFB", 0, {0, 0, 1, 1}), ahead = line("FFBB", 1, {0, 1, 0, 1});
    CHECK(
        refusal(chain(3, 2, Bytes(2)), {in_turn, ahead, line("FBFB", 2, {0, 0, 1, 1})}) ==
        "actions wait for each other: rank 0 for B microbatch 0 of stage 0 of language, rank 1 for "
        "F microbatch 1 of stage 1 of language");
  }
}

}  // namespace polyphony::tests
