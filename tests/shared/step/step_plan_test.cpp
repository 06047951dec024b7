// StepPlans: every schedule lowers to a Program that verify() accepts, whatever grids it runs on;
// missing, repeated or misplaced actions are reported.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "shared/check/check.h"
#include "shared/lower/lower.h"
#include "shared/random.h"
#include "shared/scenario/typical_batch.h"
#include "shared/scenario_io/scenario_json.h"
#include "shared/schedule/action_text.h"
#include "shared/schedule/orders.h"
#include "shared/step/step_plan.h"
#include "shared/verify/verify.h"
#include "tests/shared/support/one_pipeline.h"

using namespace polyphony;

namespace {

using examples::one_grid;
using examples::text_only;
using Made = examples::OnePipeline;

std::vector<std::string> faults(const Made& m) {
  return check_actions(m.scenario.model, m.plan, m.step);
}

}  // namespace

TEST_CASE("every schedule lowers to a valid Program") {
  for (const Schedule& row : kSchedules)
    for (const int pp : {1, 2, 3, 4})
      for (const int vpp : {1, 2, 3})
        for (const int microbatches : {1, 2, 4, 6, 8})
          for (const int dp : {1, 2}) {
            const Layout layout = one_grid(row.kind, pp, vpp, dp, microbatches);
            const Scenario scenario = text_only(pp * dp, pp * vpp);
            if (check_layout(scenario, layout)) continue;
            CAPTURE(row.name);
            CAPTURE(pp);
            CAPTURE(vpp);
            CAPTURE(microbatches);
            CAPTURE(dp);
            const Plan plan = make_plan(scenario, layout);
            const Batch batch = typical_batch(scenario);
            const StepPlan step = make_step_plan(scenario, layout, plan, batch);
            REQUIRE(check_actions(scenario.model, plan, step).empty());
            const Program program = lower(scenario, layout, plan, step, batch);
            const std::vector<Fault> found = verify(program);
            REQUIRE_MESSAGE(found.empty(), found.front().text);
          }
}

TEST_CASE("a V: the first and the last layers are on the first rank") {
  const Made m = Made(ScheduleKind::zero_bubble_v, 4, 2, 8);
  CHECK(m.plan.branches[0].rank_of_stage == std::vector<int>{0, 1, 2, 3, 3, 2, 1, 0});
}

TEST_CASE("one order for all ranks of a rank set") {
  Scenario scenario = text_only(8, 2);
  Layout layout = one_grid(ScheduleKind::one_f_one_b, 2, 1, 4, 4);
  layout.modules[0].tp = 2;
  const std::vector<std::vector<Rank>> sets = rank_sets(make_plan(scenario, layout));
  REQUIRE(sets.size() == 4);
  CHECK(sets[1] == std::vector<Rank>{Rank(2), Rank(3)});
  // An encoder over four ranks joins two language cells.
  scenario = examples::small_on_cpu(4, 8);
  ModuleLayout wide, narrow;
  wide.ranks = narrow.ranks = 4;
  wide.tp = 4;
  narrow.tp = 2;
  layout = {.placement = Placement::colocated, .modules = {wide, wide, narrow}};
  REQUIRE_FALSE(check_layout(scenario, layout).has_value());
  CHECK(rank_sets(make_plan(scenario, layout)).size() == 1);
}

TEST_CASE("missing, repeated and misplaced actions are reported") {
  const Made sound = Made(ScheduleKind::zero_bubble, 2, 1, 4);
  REQUIRE(faults(sound).empty());
  Made m = sound;
  Actions& first = m.step.orders[0];
  const auto at = [&](ActionKind kind, int work) {
    return std::find(first.begin(), first.end(), make_action(kind, 0, work));
  };
  const std::string of = " of language stage 0, microbatch 1";
  SUBCASE("missing forward") {
    first.erase(at(ActionKind::forward, 1));
    CHECK(faults(m) == std::vector<std::string>{"rank 0: I" + of + " comes before its forward",
                                                "rank 0: W" + of + " comes before its forward",
                                                "rank 0: the forward" + of + " is missing"});
  }
  SUBCASE("repeated backward") {
    first.push_back(make_action(ActionKind::backward, 0, 1));
    CHECK(faults(m) == std::vector<std::string>{"rank 0: the backward" + of + " is repeated"});
  }
  SUBCASE("missing weight part") {
    first.erase(at(ActionKind::backward_weight, 1));
    CHECK(faults(m) == std::vector<std::string>{"rank 0: the weight part" + of + " is missing"});
  }
  SUBCASE("weights before input") {
    std::iter_swap(at(ActionKind::backward_weight, 1), at(ActionKind::backward_input, 1));
    CHECK(faults(m) ==
          std::vector<std::string>{"rank 0: W" + of + " comes before its input part (I)"});
  }
  SUBCASE("another rank's stage, a missing microbatch, a missing stage") {
    first.push_back(make_action(ActionKind::forward, 1, 1));
    first.push_back(make_action(ActionKind::forward, 0, 4));
    first.push_back(make_action(ActionKind::forward, 2, 0));
    CHECK(
        faults(m) ==
        std::vector<std::string>{
            "rank 0: F of language stage 1, microbatch 1 belongs on other ranks: its stage is at "
            "index 1 of the pipeline",
            "rank 0: F of language stage 0, microbatch 4 does not exist: there are 4 microbatches",
            "rank 0: stage 2 of branch 0 does not exist"});
  }
}

TEST_CASE("a plan may state a deeper receive queue") {
  Made m = Made(ScheduleKind::gpipe, 2, 1, 6);
  const auto waits = [&](int slots) {
    m.step.receive_slots = slots;
    const Program program = lower(m.scenario, m.layout, m.plan, m.step, m.batch);
    CHECK(verify(program).empty());
    int waiting = 0;  // receives that wait for an action to end
    for (const Op& op : program.ops)
      if (const auto* exchange = std::get_if<Exchange>(&op.what))
        waiting += !exchange->sends && op.waits_for.size() > 0 ? 1 : 0;
    return waiting;
  };
  // Six forwards' rows and six backwards' gradients, of which the first `slots` wait for nothing.
  for (const int slots : {1, 2, 3, 6, 7}) CHECK(waits(slots) == 2 * std::max(0, 6 - slots));
}

TEST_CASE("own actions of a layout: a schedule's actions written out give its Program") {
  for (const ScheduleKind kind : {ScheduleKind::zero_bubble, ScheduleKind::dualpipe_v}) {
    const int vpp = kind == ScheduleKind::dualpipe_v ? 2 : 1;
    const Made named = Made(kind, 2, vpp, 4);
    Layout layout = named.layout;
    layout.schedule = ScheduleKind::one_f_one_b;
    for (int rank = 0; rank < 2; ++rank)
      layout.actions.push_back(schedule(kind).order({2, vpp, 4}, rank));
    REQUIRE_FALSE(check_layout(named.scenario, layout).has_value());
    Program own = lower(named.scenario, layout, make_plan(named.scenario, layout), named.batch);
    own.layout = named.layout;
    CHECK(hash(own) ==
          hash(lower(named.scenario, named.layout, named.plan, named.step, named.batch)));
    // Through a scenario file.
    Scenario scenario = named.scenario;
    scenario.layout = layout;
    const Scenario again = read_scenario(resolved_text(scenario), "again.json", {});
    CHECK(again.layout->actions == layout.actions);
  }
}

namespace {

// All forwards, then all backwards, in random orders, the same on every rank.
std::vector<Actions> shuffled(int stages, int works, std::uint64_t seed) {
  std::vector<int> order(static_cast<std::size_t>(works));
  std::iota(order.begin(), order.end(), 0);
  std::vector<Actions> actions(static_cast<std::size_t>(stages));
  for (const ActionKind kind : {ActionKind::forward, ActionKind::backward}) {
    for (std::size_t i = order.size(); i-- > 1;)
      std::swap(order[i], order[static_cast<std::size_t>(
                              random_uniform(seed + static_cast<std::uint64_t>(kind), i) *
                              static_cast<double>(i + 1))]);
    for (int stage = 0; stage < stages; ++stage)
      for (const int work : order)
        actions[static_cast<std::size_t>(stage)].push_back(make_action(kind, stage, work));
  }
  return actions;
}

}  // namespace

TEST_CASE("own actions of a layout: encoders with ranks of their own follow any order") {
  const Scenario scenario = examples::small_on_cpu(8, 16);
  for (const int pp : {1, 2})
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      CAPTURE(pp);
      CAPTURE(seed);
      ModuleLayout encoder, language;
      encoder.ranks = encoder.pp = pp;
      language.first_rank = pp;
      language.ranks = language.pp = 2;
      const Layout layout{.placement = Placement::non_colocated,
                          .modules = {encoder, encoder, language},
                          .microbatches = 4,
                          .actions = shuffled(2, 4, seed)};
      Scenario here = scenario;
      here.cluster.ranks_per_node = pp + 2;
      REQUIRE_FALSE(check_layout(here, layout).has_value());
      const std::vector<Fault> faults =
          verify(lower(here, layout, make_plan(here, layout), typical_batch(here)));
      INFO((faults.empty() ? "" : faults.front().text));
      CHECK(faults.empty());
    }
}

TEST_CASE("own actions of a layout: a forward's recipe overrides the layout's") {
  // GPipe of two microbatches on one stage; what is kept of the first is its block's input, of the
  // second everything.
  Made m = Made(ScheduleKind::gpipe, 1, 1, 2);
  m.layout.actions = {schedule(ScheduleKind::gpipe).order({1, 1, 2}, 0)};
  const auto tapes = [&] {
    const Program program = lower(m.scenario, m.layout, m.plan, m.batch);
    CHECK(verify(program).empty());
    std::vector<Bytes> list;
    for (const Buffer& buffer : program.buffers)
      if (buffer.kind == BufferKind::tape) list.push_back(buffer.bytes);
    return list;
  };
  const std::vector<Bytes> kept = tapes();
  m.layout.actions[0][0].recipe = Recipe::full;
  const std::vector<Bytes> mixed = tapes();
  m.layout.actions[0][0].recipe = Recipe::layout;
  m.layout.modules[0].recompute = Recompute::full;
  const std::vector<Bytes> again = tapes();
  REQUIRE(kept.size() == 2);
  CHECK(mixed == std::vector<Bytes>{again[0], kept[1]});
  CHECK(again[0] < kept[0]);
  // And the other way round.
  m.layout.actions[0][1].recipe = Recipe::none;
  CHECK(tapes() == mixed);
  CHECK(read_orders(compact_text(m.layout.actions), "t") == m.layout.actions);
  CHECK(read_orders(csv_text(m.layout.actions), "t.csv") == m.layout.actions);
}

TEST_CASE("own actions of a layout: a stage is on the rank that runs it") {
  Made m = Made(ScheduleKind::one_f_one_b, 2, 1, 4);
  m.layout.actions = {schedules::one_f_one_b({2, 1, 4}, 1), schedules::one_f_one_b({2, 1, 4}, 0)};
  REQUIRE_FALSE(check_layout(m.scenario, m.layout).has_value());
  m.plan = make_plan(m.scenario, m.layout);
  CHECK(m.plan.branches[0].rank_of_stage == std::vector<int>{1, 0});
  CHECK(verify(lower(m.scenario, m.layout, m.plan, m.batch)).empty());
}

TEST_CASE("own actions of a layout: errors are reported") {
  Made m = Made(ScheduleKind::one_f_one_b, 2, 1, 2);
  std::vector<Actions>& actions = m.layout.actions;
  actions = {schedules::one_f_one_b({2, 1, 2}, 0), schedules::one_f_one_b({2, 1, 2}, 1)};
  const auto refusal = [&] {
    const auto no = check_layout(m.scenario, m.layout);
    return no ? no->reason : std::string();
  };
  CHECK(refusal().empty());
  SUBCASE("ranks") {
    actions.pop_back();
    CHECK(refusal() ==
          "actions lists 1 ranks, but pp is 2; give one order per rank along the pipeline");
  }
  SUBCASE("stages") {
    actions[0].push_back(make_action(ActionKind::forward, 2, 0));
    CHECK(refusal() == "actions has 3 stages, but pp·vpp is 2; set vpp, or correct the actions");
  }
  SUBCASE("lost") {
    actions[1].pop_back();
    CHECK(refusal() == "rank 1: the backward of language stage 1, microbatch 1 is missing");
  }
  SUBCASE("deadlock") {
    std::reverse(actions[1].begin(), actions[1].end());  // B before F, which has a name too
    CHECK(refusal().find("before its forward") != std::string::npos);
    actions[1] = {make_action(ActionKind::forward, 1, 1), make_action(ActionKind::backward, 1, 1),
                  make_action(ActionKind::forward, 1, 0), make_action(ActionKind::backward, 1, 0)};
    actions[0] = {make_action(ActionKind::forward, 0, 0), make_action(ActionKind::backward, 0, 0),
                  make_action(ActionKind::forward, 0, 1), make_action(ActionKind::backward, 0, 1)};
    CHECK(refusal() ==
          "stage 1 of language sends microbatches in a different order than stage 0 of language "
          "receives "
          "them");
    actions[1] = {make_action(ActionKind::forward, 1, 0), make_action(ActionKind::forward, 1, 1),
                  make_action(ActionKind::backward, 1, 0), make_action(ActionKind::backward, 1, 1)};
    CHECK(
        refusal() ==
        "actions wait for each other: rank 0 for B microbatch 0 of stage 0 of language, rank 1 for "
        "F microbatch 1 of stage 1 of language");
  }
}
