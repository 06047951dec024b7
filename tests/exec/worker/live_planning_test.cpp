// Plans made while training: they arrive as they were made, late ones are replaced on all ranks
// alike, and nothing is left behind.
#include <doctest/doctest.h>

#include "exec/planning/plan_ring.h"
#include "shared/check/check.h"
#include "shared/hardware/devices.h"
#include "shared/split/balanced_plan.h"
#include "tests/exec/support/live_runs.h"
#include "traces/evidence/run_folder.h"

using namespace polyphony;
using namespace polyphony::exec;
using namespace polyphony::exec::testing;

TEST_SUITE_BEGIN("live planning");

TEST_CASE("a ring: letters arrive in order, never more than slots, and none is left") {
  std::atomic<int> lying{0}, most{0};
  run_in_process(4, [&](Transport& transport) {
    Letters letters(transport, lying);
    constexpr std::uint64_t kFirst = 5, kEnd = 40;
    const auto told = [](std::uint64_t step) {
      return StepLetter{
          step, step + 1 == kEnd ? StepLetter::Kind::end : StepLetter::Kind::late, {}};
    };
    if (transport.rank() == Rank(0)) {
      PlanWriter writer(letters);
      for (std::uint64_t step = kFirst; step < kEnd; ++step) {
        writer.post(step, std::vector<std::string>(4, to_bytes(told(step))));
        most = std::max<int>(most, lying);
      }
      writer.drain();
    } else {
      PlanReader reader(letters, kFirst);
      for (std::uint64_t step = kFirst; step < kFirst + 10; ++step) {
        if (transport.rank() == Rank(2)) std::this_thread::sleep_for(std::chrono::milliseconds(2));
        CHECK(reader.read(step) == told(step));
      }
      reader.finish();
      CHECK(reader.read(100).kind == StepLetter::Kind::end);
    }
  });
  CHECK(most <= 3 * kPlanSlots);  // a slot has a letter or its acknowledgment for each reader
  CHECK(lying == 0);
}

TEST_CASE("a run planned live equals one in which every rank plans for itself, bit for bit") {
  const Question question;
  const Plan plan = make_plan(question.scenario, question.layout);
  const Layout plain = without_planner(question.layout);
  const Batch batch = question.dataset->batch(0);
  CHECK(digest(make_step_plan(question.scenario, question.layout, plan, batch), batch) !=
        digest(make_step_plan(question.scenario, plain, make_plan(question.scenario, plain), batch),
               batch));
  const PlayedRun each = play(question, options_of(Planner::each, 6));
  TempFolder folder;
  TrainOptions live = options_of(Planner::live, 6);
  live.live.save = folder.path() + "/plans";
  const PlayedRun planned = play(question, live);
  TrainOptions again = options_of(Planner::live, 6);
  again.live.replayed = parse_plans(slurp(live.live.save), "plans");
  REQUIRE(again.live.replayed.size() >= 6);
  const PlayedRun replayed = play(question, again);
  CHECK(replayed.losses == planned.losses);
  CHECK(replayed.late == planned.late);
  CHECK(planned.result.live == 6);
  CHECK(planned.left == 0);
  CHECK(replayed.left == 0);
  if (planned.result.late == 0) CHECK(planned.losses == each.losses);
  // Replayed plans are waited for: all of them in time.
  for (StepRecord& record : again.live.replayed) {
    record.late = false;
    record.plan = make_step_plan(question.scenario, question.layout, plan,
                                 question.dataset->batch(record.step));
  }
  const PlayedRun whole = play(question, again);
  CHECK(whole.result.late == 0);
  CHECK(whole.losses == each.losses);
}

TEST_CASE(
    "a planner that is always late: every step uses the layout's own schedule and is counted") {
  const Question question;
  TrainOptions options = options_of(Planner::live, 5);
  options.live.budget = Seconds(0);
  options.live.make = dawdling(question, [](std::uint64_t) { return true; });
  // It stops at once, having no time, but by then the first step has begun. Later plans are as fast
  // as a step, so they are delayed:
  const auto make = options.live.make;
  options.live.make = [make](std::uint64_t step, const Batch& batch, const auto& stop) {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    return make(step, batch, stop);
  };
  const PlayedRun late = play(question, options);
  CHECK(late.result.late == 5);
  CHECK(late.late == std::vector<bool>(5, true));
  CHECK(late.left == 0);
  const PlayedRun plain =
      play(question, without_planner(question.layout), options_of(Planner::each, 5));
  CHECK(late.losses == plain.losses);
}

TEST_CASE(
    "some plans are late: replaying the plans gives the same run, and its traces can be read") {
  const Question question;
  const TempFolder folder;
  TrainOptions options = options_of(Planner::live, 12);
  options.live.make = dawdling(question, [](std::uint64_t step) { return step == 2 || step == 7; });
  options.live.save = folder.path() + "/plans";
  options.trace_first = 0;
  options.trace_last = 12;
  const std::string out = folder.path() + "/live";
  const PlayedRun live = play(question, options, out);
  CHECK(live.left == 0);
  CHECK(live.result.late >= 2);
  CHECK(live.late[2]);
  CHECK(live.late[7]);
  CHECK(std::count(live.late.begin(), live.late.end(), true) == live.result.late);
  const auto records = parse_plans(slurp(options.live.save), "plans");
  for (std::size_t s = 0; s < 12; ++s) CHECK(records[s].late == live.late[s]);
  TrainOptions again = options_of(Planner::live, 12);
  again.live.replayed = records;
  const PlayedRun replayed = play(question, again);
  CHECK(replayed.losses == live.losses);
  CHECK(replayed.late == live.late);
  const traces::Measurement read = traces::read_run_folder(
      out, {slurp, [](const std::string& path) { return std::filesystem::exists(path); }, {}});
  const auto in_time = static_cast<std::size_t>(12 - live.result.late);
  CHECK(read.steps.size() == in_time);
}

// An encoder on the language module's two ranks, whose actions are searched.
TEST_CASE("searched orders are planned live, and replayed") {
  Question question;
  ModuleLayout grid;
  grid.ranks = grid.pp = 2;
  Layout searched{.placement = Placement::colocated, .modules = {grid, grid, grid}};
  searched.microbatches = 4;
  searched.encoder_order = EncoderOrder::phases;
  searched.planner = Planning::dip;
  question.scenario.cluster.ranks_per_node = 2;
  question.scenario.planner_costs.clear();
  store_planned(
      searched,
      balanced_plan(question.scenario, searched, *shipped_profile(question.scenario.cluster)),
      question.scenario);
  question.layout = *question.scenario.layout;
  REQUIRE_FALSE(check_layout(question.scenario, question.layout).has_value());
  const TempFolder folder;
  TrainOptions live = options_of(Planner::live, 6);
  live.live.save = folder.path() + "/plans";
  const PlayedRun planned = play(question, live);
  TrainOptions again = options_of(Planner::live, 6);
  again.live.replayed = parse_plans(slurp(live.live.save), "plans");
  CHECK(play(question, again).losses == planned.losses);
  // A search with a fixed number of placements finds the same as every rank does for itself.
  const Plan plan = make_plan(question.scenario, question.layout);
  bool another = false;
  for (StepRecord& record : again.live.replayed) {
    const Batch batch = question.dataset->batch(record.step);
    record.late = false;
    record.plan = make_step_plan(question.scenario, question.layout, plan, batch);
    another = another || record.plan.orders != make_orders(question.layout, plan).orders;
  }
  CHECK(another);
  CHECK(play(question, again).losses == play(question, options_of(Planner::each, 6)).losses);
}

TEST_CASE(
    "an exception while planning ends the run with its message; plans of other data are rejected") {
  const Question question;
  TrainOptions options = options_of(Planner::live, 8);
  options.live.make = [](std::uint64_t step, const Batch&, const auto&) -> StepPlan {
    throw std::runtime_error("no plan for step " + std::to_string(step));
  };
  CHECK_THROWS_WITH(play(question, options), "no plan for step 0");
  const TempFolder folder;
  TrainOptions saving = options_of(Planner::live, 4);
  saving.live.save = folder.path() + "/plans";
  play(question, saving);
  TrainOptions again = options_of(Planner::live, 4);
  again.live.replayed = parse_plans(slurp(saving.live.save), "plans");
  CHECK(refusal([&] { play(Question(2), again); }) ==
        "--plans: the plan of step 0 was made for other data (replay plans of the same scenario, "
        "data and "
        "seed)");
  again.steps = 6;
  again.live.replayed.resize(4);
  CHECK(refusal([&] { play(question, again); }) ==
        "--plans: the plan of step 4 is missing (make plans for as many steps, or train "
        "fewer steps)");
}

TEST_CASE("a plan that needs too much memory is replaced, and rejected when replayed") {
  const Question question;
  const TempFolder folder;
  TrainOptions options = options_of(Planner::live, 6);
  options.live.save = folder.path() + "/plans";
  const Batch third = question.dataset->batch(2);
  options.live.too_large = [third](const Program& program) {
    return program.batch == third ? "rank 1 needs all" : "";
  };
  const PlayedRun run = play(question, options);
  CHECK(run.late[2]);
  TrainOptions again = options_of(Planner::live, 6);
  again.live.replayed = parse_plans(slurp(options.live.save), "plans");
  CHECK(play(question, again).losses == run.losses);
  again.live.too_large = [](const Program&) { return "rank 1 needs all"; };
  CHECK(refusal([&] { play(question, again); }) ==
        "--plans: the plan of step 0: rank 1 needs all (make new plans: --planning live --plans "
        "FILE)");
}

// The second stage wants microbatch 1 before 0, the first sends 0 before 1.
TEST_CASE("a replayed plan whose ranks would wait for each other is rejected") {
  const Question question;
  const TempFolder folder;
  TrainOptions options = options_of(Planner::live, 2);
  options.live.save = folder.path() + "/plans";
  options.live.make = dawdling(question, [](std::uint64_t) { return false; });
  play(question, options);
  TrainOptions again = options_of(Planner::live, 2);
  again.live.replayed = parse_plans(slurp(options.live.save), "plans");
  StepPlan& plan = again.live.replayed.front().plan;
  REQUIRE_FALSE(again.live.replayed.front().late);
  for (Action& action : plan.orders[plan.order_of[2]])
    if (action.work < 2) action.work = 1 - action.work;
  CHECK(refusal([&] { play(question, again); }).starts_with("--plans: the plan of step 0: "));
}

TEST_CASE("a resumed run continues planning from its step") {
  const Question question;
  const TempFolder folder;
  const std::string plans = folder.path() + "/plans";
  TrainOptions options = options_of(Planner::live, 4);
  options.live.save = plans;
  play(question, options, folder.path() + "/run");
  options.earlier = EarlierRun::resume;
  options.steps = 9;
  const PlayedRun on = play(question, options, folder.path() + "/run");
  CHECK(on.left == 0);
  REQUIRE(on.losses.size() == 9);
  TrainOptions again = options_of(Planner::live, 9);
  again.live.replayed = parse_plans(slurp(plans), "plans");
  REQUIRE(again.live.replayed.size() == 9);
  CHECK(play(question, again).losses == on.losses);
  // After an early stop, plans that are ready are removed unread.
  TrainOptions stopped = options_of(Planner::live, 50);
  std::atomic<int> asked{0};
  stopped.interrupted = [&] { return ++asked > 3; };
  const PlayedRun early = play(question, stopped);
  CHECK(early.result.interrupted);
  CHECK(early.result.steps < 50);
  CHECK(early.left == 0);
}

TEST_SUITE_END();
