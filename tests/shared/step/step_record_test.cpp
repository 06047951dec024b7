// Letters and records of steps as bytes: they are restored; other bytes are refused with a message.
#include "shared/step/step_record.h"

#include <doctest/doctest.h>

#include "shared/error.h"
#include "shared/lower/lower.h"
#include "shared/scenario/typical_batch.h"
#include "shared/verify/verify.h"
#include "tests/shared/support/example_models.h"
#include "tests/shared/support/resealed.h"

using namespace polyphony;

namespace {

// Two encoder ranks feed a pipeline of two ranks, two lanes; four microbatches under a planner.
struct RecordCase {
  Scenario scenario = examples::small_on_cpu(6, 16);
  Layout layout = made();
  Plan plan = make_plan(scenario, layout);
  Batch batch = typical_batch(scenario);
  StepPlan step = make_step_plan(scenario, layout, plan, batch);

  static Layout made() {
    ModuleLayout encoder, language;
    encoder.ranks = 2;
    language.ranks = 4;
    language.pp = 2;
    language.first_rank = 2;
    Layout layout{.placement = Placement::non_colocated, .modules = {encoder, encoder, language}};
    layout.microbatches = 4;
    layout.planner = Planning::entrain;
    return layout;
  }
  StepRecord record(std::uint64_t number) const {
    return {number, digest(StepPlan{}, batch), false, step};
  }
  std::vector<std::string> faults(const StepPlan& other) const {
    return check_step(scenario.model, plan, other, batch);
  }
};

}  // namespace

TEST_CASE("letters and records are restored from their bytes, and not from other bytes") {
  const RecordCase c;
  const StepParts parts(c.scenario.model, c.plan, c.step, c.batch);
  const StepLetter planned{7, StepLetter::Kind::planned, parts.of(Rank(3))};
  const StepLetter late{8, StepLetter::Kind::late, {}}, end{9, StepLetter::Kind::end, {}};
  for (const StepLetter& letter : {planned, late, end})
    CHECK(read_step_letter(to_bytes(letter)) == letter);
  const StepRecord with = c.record(7), without{8, 5, true, {}};
  for (const StepRecord& record : {with, without})
    CHECK(read_step_record(to_bytes(record)) == record);
  CHECK_THROWS_WITH_AS(read_step_record(to_bytes(late)), "the bytes are not of the expected kind",
                       StepPlanError);
  CHECK_THROWS_AS(read_step_part(to_bytes(planned)), StepPlanError);
  const std::string bytes = to_bytes(planned);
  for (std::size_t i = 0; i < bytes.size(); i += 7)
    CHECK_THROWS_AS(read_step_letter(std::string_view(bytes).substr(0, i)), StepPlanError);
}

TEST_CASE("a file of plans: a truncated last record is ignored, a damaged record is reported") {
  const RecordCase c;
  const std::string one = plans_entry(c.record(0)), two = plans_entry({1, 5, true, {}});
  const std::string file = plans_head() + one + two;
  CHECK(parse_plans(file, "p") == std::vector<StepRecord>{c.record(0), {1, 5, true, {}}});
  CHECK(parse_plans(plans_head(), "p").empty());
  for (std::size_t lost = 1; lost < two.size(); ++lost)
    CHECK(parse_plans(std::string_view(file).substr(0, file.size() - lost), "p").size() == 1);
  std::string damaged = file;
  damaged[plans_head().size() + one.size() + 10] ^= 1;
  CHECK_THROWS_WITH_AS(parse_plans(damaged, "p"),
                       "p: /1: a step plan is damaged: its checksum differs (write the plans "
                       "again: --planning live --plans FILE)",
                       InputError);
  CHECK_THROWS_AS(parse_plans("polyphony plans 2\n", "p"), InputError);
}

TEST_CASE("a plan for other data or another layout is refused before it is lowered") {
  const RecordCase c;
  CHECK(c.faults(c.step).empty());
  const auto fault = [&](auto change) {
    StepPlan step = c.step;
    change(step);
    const auto faults = c.faults(step);
    return faults.empty() ? std::string() : faults.front();
  };
  CHECK(fault([](StepPlan& s) { s.works.work_samples[3] = 16; }) == "sample 16 does not exist");
  CHECK(fault([](StepPlan& s) { s.works.works[2].lane ^= 1; }) ==
        "work 2 has a wrong branch, lane or position");
  CHECK(fault([](StepPlan& s) { s.works.first_work.pop_back(); }) ==
        "it has works of 1 branches, but the layout has 2");
  CHECK(fault([](StepPlan& s) { s.order_of.pop_back(); }) ==
        "it has orders of 5 ranks, but the layout has 6");
  CHECK(fault([](StepPlan& s) { s.order_of[0] = 9; }) == "order 9 does not exist");
  CHECK(fault([](StepPlan& s) { s.orders[0].pop_back(); }).find("is missing") != std::string::npos);
  // With its planner, each encoder lane has six works (four slots and two deferred), so that
  // those of the language module begin at 12. Without it there are four on each of two lanes, and
  // they begin at 8.
  CHECK(c.plan.branches[0].microbatches == 6);
  const Plan plain = make_plan(c.scenario, without_planner(c.layout));
  CHECK(check_step(c.scenario.model, plain, c.step, c.batch).front() ==
        "branch 1 does not have its 8 works");
}

// Bytes are changed and the checksum is recomputed, so that the checksum does not stop them.
TEST_CASE("a record with any bytes is refused with a message or can be lowered") {
  const RecordCase c;
  const std::string bytes = to_bytes(c.record(0));
  int refused = 0, unfit = 0, lowered = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    StepRecord record;
    try {
      record = read_step_record(test::resealed(bytes, seed));
    } catch (const StepPlanError&) {
      ++refused;
      continue;
    }
    if (!c.faults(record.plan).empty()) {
      ++unfit;
      continue;
    }
    try {
      verify(lower(c.scenario, c.layout, c.plan, record.plan, c.batch));
      ++lowered;
    } catch (const std::logic_error&) {
      ++unfit;  // lower() says by name what a StepPlan lacks
    }
  }
  CHECK(refused > 30);
  CHECK(unfit > 30);
  CHECK(lowered > 30);
}
