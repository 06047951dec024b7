// Answers of `polyphony plan` about planners: spreads, deferred samples, gain, and whether batches
// are large enough.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "shared/check/check.h"
#include "shared/hardware/devices.h"
#include "sim/answer_json/answer_schema.h"
#include "sim/answer_json/answers_json.h"
#include "sim/pages/plan_page.h"
#include "sim/plan_answers/plan_answer.h"
#include "sim/shown/plan_text.h"
#include "tests/shared/support/example_models.h"
#include "tests/shared/support/schema_validator.h"

namespace polyphony::tests {
namespace {

using namespace sim;

// An encoder on one rank and a language module with two stages, for the given samples.
PlanAnswer answered(const SyntheticData& data, int global_batch) {
  Scenario scenario = examples::small_on_cpu(3, global_batch);
  scenario.data.source = data;
  ModuleLayout encoder, language;
  encoder.ranks = 1;
  language.first_rank = 1;
  language.pp = language.ranks = 2;
  Layout layout{.placement = Placement::non_colocated, .modules = {encoder, encoder, language}};
  layout.microbatches = 8;
  layout.planner = Planning::entrain;
  scenario.layout = layout;
  return std::get<PlanAnswer>(answer_plan(scenario, *shipped_profile(scenario.cluster)));
}

SyntheticData varied() {
  return {{.kind = Distribution::Kind::uniform, .a = 0, .b = 6},
          {.kind = Distribution::Kind::lognormal, .a = 4, .b = 1, .low = 8, .high = 400},
          examples::always(1)};
}

// One pipeline of all modules, or one per module, on two ranks.
Scenario on_both_ranks(Placement placement) {
  Scenario scenario = examples::small_on_cpu(2, 64);
  scenario.data.source = varied();
  ModuleLayout both;
  both.pp = both.ranks = 2;
  scenario.layout = Layout{.placement = placement, .modules = {both, both, both}};
  scenario.layout->microbatches = 8;
  return scenario;
}

bool accepted(const std::string& schema, const nlohmann::json& answer) {
  const nlohmann::json root = nlohmann::json::parse(schema);
  return test::SchemaValidator(root).accepts(answer, root);
}

}  // namespace

TEST_CASE("a plan shows the gain of its planner if samples differ") {
  const PlanAnswer answer = answered(varied(), 64);
  REQUIRE(answer.work);
  const PlannedWork& work = *answer.work;
  CHECK(work.samples == 64);
  CHECK(work.deferred > 0);
  CHECK(work.encoder.planned < work.encoder.unplanned / 3);
  CHECK(work.language.planned < work.language.unplanned / 3);
  for (const PlannedWork::Spread& spread : {work.encoder, work.language}) {
    CHECK(spread.least >= 0);
    CHECK(spread.least <= spread.planned);
  }
  CHECK(work.pays());
  CHECK(work.ranks == std::vector<int>{1, 2});
  // One replica with eight microbatches: the same total work (except constants per op), assigned
  // more evenly.
  REQUIRE(work.microbatches.size() == 2);
  CHECK(work.microbatches[0].module == "vision");
  for (const MicrobatchWork& module : work.microbatches) {
    const auto sum = [](const std::vector<double>& list) {
      return std::accumulate(list.begin(), list.end(), 0.0);
    };
    const auto range = [](const std::vector<double>& list) {
      const auto [least, most] = std::minmax_element(list.begin(), list.end());
      return *most - *least;
    };
    CHECK(module.unplanned.size() == 8);
    CHECK(module.planned.size() == 8);
    CHECK(sum(module.planned) == doctest::Approx(sum(module.unplanned)).epsilon(0.05));
    CHECK(range(module.planned) < range(module.unplanned) / 2);
  }
  const std::string page = traces::to_html(plan_page(answer, "question"));
  CHECK(page.find("before and after planning") != std::string::npos);
  CHECK(page.find("in the order of the batch</text>") != std::string::npos);
  const std::string text = work_text(work, 64);
  CHECK(text.find("planner entrain: " + std::to_string(work.deferred) + " of 64 samples wait") ==
        0);
  CHECK(text.find("does not pay") == std::string::npos);
  CHECK(accepted(plan_schema(), to_json(answer)));
}

TEST_CASE("a plan shows the gain of a searched order and its distance from the lower bound") {
  Scenario scenario = on_both_ranks(Placement::colocated);
  Layout& layout = *scenario.layout;
  layout.encoder_microbatches = 16;
  layout.encoder_order = EncoderOrder::phases;
  layout.planner = Planning::dip;
  layout.modules[0].sub_microbatch = 24;  // of 0 to 48 images of a microbatch
  const auto answer =
      std::get<PlanAnswer>(answer_plan(scenario, *shipped_profile(scenario.cluster)));
  CHECK_FALSE(answer.work);
  REQUIRE(answer.order);
  const SearchedOrder& order = *answer.order;
  CHECK(order.works == 16);
  CHECK(order.filled > 8);
  CHECK(order.filled < 16);
  CHECK(order.forwards[0] + order.forwards[1] == 2 * (16 + 8));  // stages · works
  CHECK(order.gap() >= 0);
  CHECK(order.pays());
  // Eight microbatches; those of the encoder are divided into two parts each.
  REQUIRE(order.microbatches.size() == 2);
  CHECK(order.microbatches[0].unplanned.size() == 8);
  CHECK(order.microbatches[0].planned.size() == 16);
  CHECK(order.microbatches[1].planned.size() == 8);
  CHECK(
      traces::to_html(plan_page(answer, "question")).find("sub-microbatches as they run</text>") !=
      std::string::npos);
  const std::string text = order_text(order);
  CHECK(text.find("planner dip: " + std::to_string(order.filled) +
                  " of 16 sub-microbatches of encoders hold items\n") == 0);
  CHECK(accepted(plan_schema(), to_json(answer)));
}

// One rank per stage. The encoder's sub-microbatches reach 95 % of the best rate. The language
// module takes longer and has proportionally more segments, at most one per block.
TEST_CASE("segments for planner dip: sizes, segments, and a legal layout") {
  const Scenario scenario = on_both_ranks(Placement::homogeneous);
  const HardwareProfile profile = *shipped_profile(scenario.cluster);
  const auto answer = std::get<SegmentsAnswer>(answer_segments(scenario, profile));
  REQUIRE(answer.rows.size() == 2);
  const SegmentRow &encoder = answer.rows[0], &language = answer.rows[1];
  CHECK(encoder.items >= 1);
  CHECK(encoder.rate_share >= 0.95);
  CHECK(encoder.rate_share <= 1);
  CHECK(language.items == 0);
  const bool longer = language.latency > encoder.latency;
  CHECK((longer ? encoder : language).segments == 1);
  CHECK_FALSE(check_layout(scenario, answer.layout));
  CHECK(answer.layout.planner == Planning::dip);
  CHECK(answer.layout.encoder_microbatches == 8 * encoder.parts);
  CHECK(answer.layout.modules[0].sub_microbatch == encoder.items);
  CHECK(answer.step > Seconds(0));
  CHECK(accepted(segments_schema(), to_json(answer)));
  CHECK(segments_text(answer).find("best rate  segments") != std::string::npos);
}

TEST_CASE("a planner gains nothing if samples are equal, and the plan shows it") {
  const PlanAnswer answer =
      answered({examples::always(1), examples::always(8), examples::always(1)}, 16);
  REQUIRE(answer.work);
  CHECK(answer.work->deferred == 0);
  CHECK(answer.work->encoder.unplanned == 0);
  CHECK_FALSE(answer.work->pays());
  CHECK(answer.work->stable_batch == 1);
  CHECK(work_text(*answer.work, 16).find("it does not pay, leave it out") != std::string::npos);
}

TEST_CASE("a batch smaller than the stable batch causes a warning") {
  PlannedWork work = *answered(varied(), 64).work;
  work.stable_batch = 256;
  work.stable_ranks = {1, 2};
  CHECK(work_text(work, 64).find("warning: a global batch of 64 is too small for one split to be "
                                 "right for all steps; from 256 samples on") != std::string::npos);
  CHECK(work_text(work, 256).find("warning") == std::string::npos);
  work.stable_batch = 0;
  CHECK(work_text(work, 256).find(
            "warning: ranks of a replica by work differ from batch to batch") != std::string::npos);
}

}  // namespace polyphony::tests
