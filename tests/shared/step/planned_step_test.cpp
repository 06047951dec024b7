// Steps under a planner: which samples each work holds, in which order; checked by verify().
#include "shared/step/planned_step.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "shared/check/check.h"
#include "shared/lower/lower.h"
#include "shared/plan/item_cost.h"
#include "shared/scenario/typical_batch.h"
#include "shared/schedule/action_text.h"
#include "shared/verify/verify.h"
#include "tests/shared/support/example_models.h"

namespace polyphony {
namespace {

// Samples of 0 to 3 images of 16 patches and of 1 to 60 tokens.
Scenario varied(int ranks, int global_batch) {
  Scenario scenario = examples::small_on_cpu(ranks, global_batch);
  scenario.data.source =
      SyntheticData{{.kind = Distribution::Kind::uniform, .a = 0, .b = 3},
                    {.kind = Distribution::Kind::lognormal, .a = 2.5, .b = 1, .low = 1, .high = 60},
                    examples::always(1)};
  return scenario;
}

ModuleLayout grid(int first, int ranks, int tp = 1, int pp = 1) {
  ModuleLayout made;
  made.first_rank = first;
  made.ranks = ranks;
  made.tp = tp;
  made.pp = pp;
  return made;
}
Layout apart(const ModuleLayout& encoder, const ModuleLayout& language, int microbatches) {
  Layout layout{.placement = Placement::non_colocated, .modules = {encoder, encoder, language}};
  layout.microbatches = microbatches;
  layout.planner = Planning::entrain;
  return layout;
}

struct MadePlanned {
  Plan plan;
  Batch batch;
  StepPlan step;
};
MadePlanned make(const Scenario& scenario, const Layout& layout, std::uint64_t step = 0) {
  Plan plan = make_plan(scenario, layout);
  Batch batch = batch_of_step(scenario, step);
  StepPlan made = make_step_plan(scenario, layout, plan, batch);
  return {std::move(plan), std::move(batch), std::move(made)};
}

// Encoder works of a pair of slots: 0 and what it defers, 1; 2.
int deferred_items(const StepPlan& step) {
  int items = 0;
  const Range works = step.works.of_branch(0);
  for (std::uint32_t w = works.begin; w < works.end; ++w)
    if (step.works.works[w].index % 3 == 1)
      items += static_cast<int>(step.works.works[w].items.end - step.works.works[w].items.begin);
  return items;
}

std::string text(const StepPlan& step, int rank) {
  return to_text(step.actions(Rank(static_cast<std::size_t>(rank))));
}

}  // namespace

TEST_CASE("planned steps are valid for all grids, and defer samples") {
  int sound = 0, deferred = 0;
  std::vector<Layout> layouts;
  for (const int microbatches : {1, 2, 3, 4, 7})
    for (const Layout& layout :
         std::vector<Layout>{apart(grid(0, 1), grid(1, 1), microbatches),
                             apart(grid(0, 2, 1, 2), grid(2, 3, 1, 3), microbatches),
                             apart(grid(0, 2), grid(2, 4, 2), microbatches),
                             apart(grid(0, 4, 1, 2), grid(4, 4, 1, 2), microbatches),
                             apart(grid(0, 3), grid(3, 2), microbatches),
                             apart(grid(0, 1), grid(1, 2), microbatches),
                             apart(grid(2, 2, 2), grid(0, 2, 1, 2), microbatches)}) {
      layouts.push_back(layout);
      layouts.push_back(layout);
      for (std::size_t m : {0, 1}) {
        layouts.back().modules[m].ahead = 2;
        layouts.back().modules[m].spread = Spread::images;
      }
      layouts.push_back(layout);
      layouts.back().schedule = ScheduleKind::zero_bubble;
      layouts.back().modules[2].shard = Shard::full;
    }
  for (const EncoderOrder order : {EncoderOrder::phases, EncoderOrder::interleaved})
    for (const int microbatches : {2, 4, 6}) {
      Layout layout = apart(grid(0, 2, 1, 2), grid(0, 2, 1, 2), microbatches);
      layout.placement = Placement::colocated;
      layout.encoder_order = order;
      layouts.push_back(layout);
    }
  for (const Layout& layout : layouts) {
    CAPTURE(describe(examples::small_on_cpu(8, 24).model, layout));
    const Scenario scenario = varied(world_size(layout), 24);
    const auto refused = check_layout(scenario, layout);
    REQUIRE_MESSAGE(!refused, refused->reason);
    for (const std::uint64_t at : {0, 1}) {
      const auto [plan, batch, step] = make(scenario, layout, at);
      CHECK(check_actions(scenario.model, plan, step).empty());
      const std::vector<Fault> faults = verify(lower(scenario, layout, plan, step, batch));
      CHECK_MESSAGE(faults.empty(), faults.front().text);
      sound += faults.empty() ? 1 : 0;
      deferred += deferred_items(step) > 0 ? 1 : 0;
    }
  }
  CHECK(sound == 2 * (5 * 7 * 3 + 6));
  CHECK(deferred > sound / 3);  // a fifth have one microbatch
}

TEST_CASE("a pair of microbatches: the deferred samples' encoder work returns with the second") {
  const Scenario scenario = varied(2, 24);
  const Layout layout = apart(grid(0, 1), grid(1, 1), 5);
  const StepPlan step = make(scenario, layout).step;
  // 1F1B of the encoder, one slot ahead: slots 0 to 4 are works 0 + 1, 2, 3 + 4, 5 and 6.
  CHECK(text(step, 0) == "F0.0 F0.1 F0.2 B0.0 F0.3 F0.4 B0.2 B0.1 F0.5 B0.3 F0.6 B0.5 B0.4 B0.6");
  CHECK(text(step, 1) == "F0.0 B0.0 F0.1 B0.1 F0.2 B0.2 F0.3 B0.3 F0.4 B0.4");
}

TEST_CASE("without deferral no sample of a step waits for the next microbatch") {
  const Scenario scenario = varied(2, 24);
  const Layout layout = apart(grid(0, 1), grid(1, 1), 5);
  Layout plain = layout;
  plain.deferral = false;
  int deferred = 0;
  for (std::uint64_t at = 0; at < 10; ++at) {
    deferred += deferred_items(make(scenario, layout, at).step);
    const auto [plan, batch, step] = make(scenario, plain, at);
    CHECK(deferred_items(step) == 0);
    CHECK(verify(lower(scenario, plain, plan, step, batch)).empty());
  }
  CHECK(deferred > 0);
}

TEST_CASE("planned microbatches are even where those in the order of the batch are not") {
  const Scenario scenario = varied(8, 128);
  const Layout layout = apart(grid(0, 4, 1, 2), grid(4, 4, 1, 2), 8);
  const Plan plan = make_plan(scenario, layout);
  double encoder_before = 0, encoder_after = 0, language_before = 0, language_after = 0,
         language_plain = 0;
  for (std::uint64_t at = 0; at < 10; ++at) {
    const PlannedWorks works = compare_works(scenario.model, plan, batch_of_step(scenario, at));
    REQUIRE(works.before.size() == 16);
    REQUIRE(works.after.size() == 16);
    CHECK(works.samples == 128);
    CHECK(works.deferred > 0);
    const PlannedWorks plain =
        compare_works(scenario.model, plan, batch_of_step(scenario, at), false);
    CHECK(plain.deferred == 0);
    const auto most = [](const PlannedWorks& of, double entrain::SampleWork::* by) {
      double largest = 0;
      for (const entrain::SampleWork& work : of.after) largest = std::max(largest, work.*by);
      return largest;
    };
    CHECK(most(plain, &entrain::SampleWork::encoder) ==
          doctest::Approx(most(works, &entrain::SampleWork::encoder)));
    const auto spread = [&](const std::vector<entrain::SampleWork>& of,
                            double entrain::SampleWork::* by) {
      double sum = 0, squares = 0;
      for (const entrain::SampleWork& work : of) sum += work.*by;
      const double mean = sum / static_cast<double>(of.size());
      for (const entrain::SampleWork& work : of) squares += std::pow(work.*by / mean - 1, 2);
      return std::sqrt(squares / static_cast<double>(of.size()));
    };
    encoder_before += spread(works.before, &entrain::SampleWork::encoder);
    encoder_after += spread(works.after, &entrain::SampleWork::encoder);
    language_before += spread(works.before, &entrain::SampleWork::language);
    language_after += spread(works.after, &entrain::SampleWork::language);
    language_plain += spread(plain.after, &entrain::SampleWork::language);
  }
  CHECK(encoder_after < encoder_before / 3);  // images are all alike: no finer than one
  CHECK(language_after < language_before / 5);
  CHECK(language_after < 0.7 * language_plain);
}

TEST_CASE("a plan stores the costs that it balances, and the same plan results from them") {
  const Scenario scenario = varied(4, 24);
  const Layout layout = apart(grid(0, 1), grid(1, 3, 1, 3), 4);
  CHECK(!is_split(scenario, layout));
  const MadePlanned made = make(scenario, layout);
  Scenario stored = scenario;
  store_planned(layout, made.plan, stored);
  const Layout& resolved = *stored.layout;
  CHECK(is_split(stored, resolved));
  CHECK(!is_split(scenario, resolved));  // without the costs
  CHECK(stored.planner_costs.at(ModuleId(0)).item.has_value());
  CHECK(make(stored, resolved).step == made.step);
  // Durations are not in a Program: it is the same as one of twice the seconds.
  Scenario slower = stored;
  for (auto& [module, costs] : slower.planner_costs)
    if (auto& cost = costs.item)
      cost = ItemCost{2 * cost->square, 2 * cost->linear, 2 * cost->constant};
  CHECK(hash(lower(stored, resolved, made.plan, made.batch)) ==
        hash(lower(slower, resolved, make_plan(slower, resolved), made.batch)));
}

TEST_CASE(
    "layouts that a planner does not support are refused, and the message says what it supports") {
  const Scenario scenario = varied(4, 24);
  const auto refused = [&](Layout layout) {
    const auto why = check_layout(scenario, layout);
    return why ? why->reason : std::string();
  };
  Layout layout = apart(grid(0, 1), grid(1, 3, 1, 3), 4);
  CHECK(refused(layout).empty());
  layout.encoder_microbatches = 2;
  CHECK(refused(layout) ==
        "planner entrain gives encoders as many microbatches as the language module; leave "
        "encoder_microbatches out");
  layout.encoder_microbatches = 0;
  layout.actions = {{}};
  CHECK(refused(layout) ==
        "planner entrain orders the encoders' actions by itself; leave actions out");
  layout = apart(grid(0, 4), grid(0, 4, 1, 4), 4);
  layout.placement = Placement::colocated;
  CHECK(refused(layout) ==
        "planner entrain defers samples from one microbatch to the next, but encoder_order "
        "in-turn has finished a microbatch by then; use phases or interleaved");
  layout.placement = Placement::homogeneous;
  layout.modules.assign(3, grid(0, 4, 1, 4));
  CHECK(refused(layout) ==
        "planner entrain applies only to encoders with grids of their own; leave it out");
}

// 6, 8, 16 and 32 patches a side: sizes in between are not square, and so not images.
TEST_CASE("item costs are fitted to image sizes that occur") {
  const Scenario scenario = varied(1, 4);
  Batch batch;
  for (const std::int32_t side : {32, 8, 6, 16})
    batch.samples.push_back({0, {{Modality::image, side * side, 0}, {Modality::text, 5, 1}}});
  std::vector<std::int64_t> asked;
  const ItemCost cost =
      fit_item_cost(scenario.model, ModuleId(0), batch, [&](ModuleId module, const WorkSize& size) {
        if (module == ModuleId(0)) asked.push_back(size.tokens);
        return module == ModuleId(0) ? 1e-6 * static_cast<double>(size.tokens) : 0.0;
      });
  CHECK(asked == std::vector<std::int64_t>{36, 256, 1024});
  CHECK(cost.linear == doctest::Approx(1e-6));
  CHECK(cost.square == 0);
}

TEST_CASE("item costs are those of an image's own grid") {
  Scenario scenario = varied(1, 4);
  scenario.model.modules[0].window = 3;
  std::vector<std::int64_t> asked;
  fit_item_cost(scenario.model, ModuleId(0), {{{0, {image_item({2, 8}), {Modality::text, 5, 1}}}}},
                [&](ModuleId module, const WorkSize& size) {
                  if (module == ModuleId(0)) asked.push_back(size.window_pairs);
                  return 1e-6 * static_cast<double>(size.tokens);
                });
  // Windows of 2 × 3, 2 × 3 and 2 × 2 patches: 36 + 36 + 16 pairs. A square would have 100.
  CHECK(asked == std::vector<std::int64_t>{88});
}

TEST_CASE("item costs: a quadratic is found, no part is below zero") {
  const auto points = [](double square, double linear, double constant) {
    std::vector<std::pair<double, double>> made;
    for (const double x : {64.0, 256.0, 1024.0, 4096.0, 16384.0})
      made.emplace_back(x, square * x * x + linear * x + constant);
    return made;
  };
  const ItemCost found = fit_item_cost(points(3e-12, 2e-7, 4e-5));
  CHECK(found.square == doctest::Approx(3e-12).epsilon(1e-6));
  CHECK(found.linear == doctest::Approx(2e-7).epsilon(1e-6));
  CHECK(found.constant == doctest::Approx(4e-5).epsilon(1e-6));
  const ItemCost straight = fit_item_cost(points(0, 2e-7, 0));
  CHECK(straight == ItemCost{0, straight.linear, 0});
  CHECK(straight.linear == doctest::Approx(2e-7));
  CHECK(fit_item_cost({{16, 8.0}}) == ItemCost{0, 0.5, 0});
  // Slower than its tokens at first: a line would begin below zero.
  std::vector<std::pair<double, double>> bent = points(1e-9, 0, 0);
  bent.back().second *= 1.5;
  const ItemCost kept = fit_item_cost(bent);
  CHECK(std::min({kept.square, kept.linear, kept.constant}) >= 0);
  // FLOPs of the language module: three times the forward's, 2·tokens·weights and, causal,
  // 2·tokens²· width for scores and as much for values, halved.
  const Scenario scenario = varied(1, 4);
  const ItemCost flops = item_flops(scenario, ModuleId(2));
  const double block = 96 * (96 + 2 * 48 + 96) + 3.0 * 96 * 256;
  CHECK(flops.linear == doctest::Approx(6 * (6 * block + 96 * 512)).epsilon(0.05));
  CHECK(flops.square == doctest::Approx(3.0 * 6 * 2 * 96).epsilon(0.05));
}

}  // namespace polyphony
