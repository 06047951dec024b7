// Steps under planner dip: sub-microbatches, searched orders, what actions recompute; proven by
// verify().
#include "shared/step/searched_step.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "shared/check/check.h"
#include "shared/cost/cost_model.h"
#include "shared/graph/memory.h"
#include "shared/lower/lower.h"
#include "shared/planner/timetable.h"
#include "shared/scenario/typical_batch.h"
#include "shared/scenario_io/scenario_json.h"
#include "shared/scenario_io/scenario_profile.h"
#include "shared/split/balanced_plan.h"
#include "shared/step/assign.h"
#include "shared/verify/verify.h"
#include "tests/shared/support/scenario_files.h"

namespace polyphony {
namespace {

// Samples of 0 to 6 images of 1,024 patches and 500 to 2,000 text tokens on 8 H100s.
Scenario varied_images(const std::string& layout, const std::string& images = "uniform(0,6)") {
  return read_scenario(
      R"-({"polyphony": 1, "model": {
        "vision": {"layers": 8, "hidden": 1024, "heads": 16, "ffn": 4096, "patch": 14, "image_size": 448},
        "projector": {"from": "vision", "merge": "2x2"},
        "language": {"from": "projector", "layers": 12, "hidden": 2048, "heads": 16, "kv_heads": 8, "ffn": 5504, "vocab": 32000}},
      "cluster": {"node": {"device": "H100", "ranks": 8}},
      "data": {"global_batch": 16, "images": {"per_sample": ")-" +
          images + R"-("},
               "text": {"tokens": "uniform(500,2000)"}, "sequence": 4096},
      "training": {"precision": "bf16"},
      "layout": )-" +
          layout + "}",
      "s.json", test::file_text);
}

struct MadeSearched {
  Layout layout;
  Plan plan;
  Batch batch;
  StepPlan step;
  Program program;
  Timeline timeline;
};
MadeSearched make_searched(const Scenario& scenario, Layout layout, const HardwareProfile& profile,
                           std::uint64_t at = 0) {
  MadeSearched made;
  const auto refused = check_layout(scenario, layout);
  REQUIRE_MESSAGE(!refused, refused->reason);
  made.plan = balanced_plan(scenario, layout, profile);
  made.layout = with_blocks(layout, made.plan);
  made.batch = batch_of_step(scenario, at);
  made.step = make_step_plan(scenario, made.layout, made.plan, made.batch);
  CHECK(check_actions(scenario.model, made.plan, made.step).empty());
  made.program = lower(scenario, made.layout, made.plan, made.step, made.batch);
  const std::vector<Fault> faults = verify(made.program);
  REQUIRE_MESSAGE(faults.empty(), faults.front().text);
  const auto compiled = compile(made.program);
  const auto& graph = std::get<Compiled>(compiled);
  made.timeline =
      estimate(made.program, graph, price(made.program, graph, scenario.cluster, profile)).timeline;
  return made;
}
// When the last action ends.
double actions_end(const MadeSearched& made) {
  Seconds end{};
  for (std::size_t op = 0; op < made.program.ops.size(); ++op)
    if (std::holds_alternative<Compute>(made.program.ops[op].what))
      end = std::max(end, made.timeline.ops[op].end);
  return end.count();
}

constexpr const char* kColocated =
    R"({"placement": "colocated", "microbatches": 8, "schedule": "interleaved", "encoder_order": "interleaved",
        "planner": "dip", "encoder_microbatches": 16, "vision": {"pp": 4, "tp": 2, "sub_microbatch": 2},
        "language": {"pp": 4, "tp": 2, "vpp": 3}})";

// Samples of 1 to 6 images, so that the images of each lane stay on it.
constexpr const char* kTwoLanes =
    R"({"placement": "colocated", "microbatches": 4, "schedule": "interleaved", "encoder_order": "interleaved",
        "planner": "dip", "encoder_microbatches": 4, "vision": {"pp": 4, "tp": 1},
        "language": {"pp": 4, "tp": 1, "vpp": 3}})";

}  // namespace

TEST_SUITE("searched step") {
  TEST_CASE("for all grids, steps are valid, and faster than in the schedule's order") {
    int quicker = 0, all = 0;
    for (
        const char* text :
        {kColocated,
         R"({"placement": "colocated", "microbatches": 8, "encoder_order": "phases", "planner": "dip",
              "encoder_microbatches": 8, "vision": {"pp": 4, "tp": 1}, "language": {"pp": 4, "tp": 2}})",
         R"({"placement": "non-colocated", "microbatches": 8, "planner": "dip", "encoder_microbatches": 16,
              "vision": {"ranks": 2, "pp": 2, "sub_microbatch": 2}, "language": {"ranks": 6, "pp": 3}})",
         R"({"placement": "non-colocated", "microbatches": 8, "planner": "dip", "schedule": "interleaved",
              "vision": {"ranks": 4, "pp": 2, "vpp": 2}, "language": {"ranks": 4, "pp": 2, "vpp": 2, "shard": "full"}})"}) {
      const Scenario scenario = varied_images(text);
      const HardwareProfile profile = scenario_profile(scenario, test::file_text);
      CAPTURE(describe(scenario.model, *scenario.layout));
      for (const std::uint64_t at : {0, 1, 2}) {
        const MadeSearched made = make_searched(scenario, *scenario.layout, profile, at);
        Layout plain = made.layout;
        plain.planner = Planning::none;
        plain.encoder_microbatches = 0;
        for (ModuleLayout& grid : plain.modules) grid.sub_microbatch = 1;
        const MadeSearched before = make_searched(scenario, plain, profile, at);
        ++all;
        // If nothing can be gained, the error of the curves.
        CHECK(actions_end(made) < 1.005 * actions_end(before));
        quicker += actions_end(made) < 0.99 * actions_end(before) ? 1 : 0;
        // Every item is in exactly one work of the encoder.
        std::set<std::pair<std::uint32_t, std::uint32_t>> items;
        std::size_t count = 0;
        const Range works = made.step.works.of_branch(0);
        for (std::uint32_t w = works.begin; w < works.end; ++w) {
          const Work& work = made.step.works.works[w];
          for (std::uint32_t i = work.items.begin; i < work.items.end; ++i, ++count)
            items.emplace(made.step.works.items_of_works[i].sample,
                          made.step.works.items_of_works[i].item);
        }
        std::size_t wanted = 0;
        for (const Sample& sample : made.batch.samples)
          for (const Item& item : sample.items) wanted += item.modality == Modality::image ? 1 : 0;
        CHECK(count == wanted);
        CHECK(items.size() == wanted);
      }
    }
    CHECK(quicker > all / 2);
  }

  // Filling may also put all encoder forwards first: this is tried as the longest lead.
  TEST_CASE(
      "without placements encoders fill the language module's bubbles: no slower than in phases") {
    const Scenario scenario = varied_images(
        R"({"placement": "colocated", "microbatches": 8, "encoder_order": "phases", "planner": "dip", "placements": 0,
            "encoder_microbatches": 8, "vision": {"pp": 4, "tp": 2}, "language": {"pp": 4, "tp": 2}})");
    const HardwareProfile profile = scenario_profile(scenario, test::file_text);
    Layout searched = *scenario.layout, plain = searched;
    searched.placements = 1000;
    plain.planner = Planning::none;
    plain.encoder_microbatches = 0;
    int quicker = 0;
    for (const std::uint64_t at : {0, 1, 2}) {
      const MadeSearched filled = make_searched(scenario, *scenario.layout, profile, at);
      CHECK(filled.step.orders != make_orders(filled.layout, filled.plan).orders);
      const double in_phases = actions_end(make_searched(scenario, plain, profile, at));
      CHECK(actions_end(filled) < 1.005 * in_phases);  // what the curves are off by
      quicker += actions_end(filled) < 0.999 * in_phases ? 1 : 0;
      CHECK(actions_end(make_searched(scenario, searched, profile, at)) <
            1.005 * actions_end(filled));
    }
    CHECK(quicker > 0);
  }

  // Lanes whose samples differ: one order for both, in which every action costs as much as on the
  // slower lane, may be slower than the schedule's own.
  TEST_CASE("two lanes have an order each, and no shared order is faster") {
    const Scenario scenario = varied_images(kTwoLanes, "uniform(1,6)");
    const HardwareProfile profile = scenario_profile(scenario, test::file_text);
    int lost = 0, differ = 0;
    for (std::uint64_t at = 0; at < 12; ++at) {
      const MadeSearched made = make_searched(scenario, *scenario.layout, profile, at);
      const std::vector<LaneGroup> lanes = lane_groups(made.plan, made.step).groups;
      REQUIRE(lanes.size() == 2);
      differ += orders_of(made.step, lanes[0]) != orders_of(made.step, lanes[1]) ? 1 : 0;
      StepPlan own = make_orders(made.layout, made.plan);
      own.works = made.step.works;
      const std::vector<LaneGroup> before = lane_groups(made.plan, own).groups;
      // When the later lane ends.
      const auto believed = [&](const std::vector<LaneGroup>& groups, const auto& orders) {
        Seconds latest{};
        for (const LaneGroup& group : groups) {
          const auto table = timetable(
              step_costs(scenario.model, made.plan, made.batch, own, group), orders(group));
          latest = std::max(latest, std::get<Timetable>(table).makespan);
        }
        return latest;
      };
      const LaneGroup both{{{0, 1}, {0, 1}}, before[0].orders};
      const auto found = search_order(step_costs(scenario.model, made.plan, made.batch, own, both),
                                      {.placements = made.layout.placements, .from = {own.orders}});
      const Seconds shared =
          believed(before, [&](const LaneGroup&) { return std::get<FoundOrder>(found).orders; });
      const Seconds schedule =
          believed(before, [&](const LaneGroup& group) { return orders_of(own, group); });
      Seconds searched{};
      for (const LaneGroup& group : lanes) {
        const auto table =
            timetable(step_costs(scenario.model, made.plan, made.batch, made.step, group),
                      orders_of(made.step, group));
        searched = std::max(searched, std::get<Timetable>(table).makespan);
      }
      CHECK(searched <= schedule);
      CHECK(searched <= shared);
      lost += shared > schedule ? 1 : 0;
      Layout plain = made.layout;
      plain.planner = Planning::none;
      plain.encoder_microbatches = 0;
      CHECK(actions_end(made) < 1.005 * actions_end(make_searched(scenario, plain, profile, at)));
    }
    CHECK(lost > 0);
    CHECK(differ > 0);
  }

  TEST_CASE("lanes that wait for each other have one order") {
    const auto groups = [](const std::string& from, const std::string& to) {
      std::string text = kTwoLanes;
      text.replace(text.find(from), from.size(), to);
      const Scenario scenario = varied_images(text, "uniform(1,6)");
      const Plan plan = make_plan(scenario, *scenario.layout);
      StepPlan step = make_orders(*scenario.layout, plan);
      step.works = assign_work(scenario.model, plan, batch_of_step(scenario, 0));
      return lane_groups(plan, step).groups.size();
    };
    CHECK(groups("\"vpp\"", "\"vpp\"") == 2);
    // Reductions of sharded gradients follow each backward.
    CHECK(groups("\"vpp\"", "\"shard\": \"gradients\", \"vpp\"") == 1);
    CHECK(groups("\"vpp\"", "\"shard\": \"optimizer\", \"vpp\"") == 2);
    // Images of one lane's samples go to both.
    CHECK(groups("\"vision\": {", "\"vision\": {\"spread\": \"images\", ") == 1);
  }

  // The search uses curves through the prices of works, estimate() the prices themselves:
  // embedding, head, edges of tokens and pairs.
  TEST_CASE("the step time that the search assumes is within two percent of the estimate") {
    const Scenario scenario = varied_images(kColocated);
    const HardwareProfile profile = scenario_profile(scenario, test::file_text);
    for (const std::uint64_t at : {0, 1, 2, 3}) {
      const MadeSearched made = make_searched(scenario, *scenario.layout, profile, at);
      const auto table = timetable(step_costs(scenario.model, made.plan, made.batch, made.step,
                                              lane_groups(made.plan, made.step).groups.front()),
                                   made.step.orders);
      REQUIRE(std::holds_alternative<Timetable>(table));
      CHECK(std::get<Timetable>(table).makespan.count() ==
            doctest::Approx(actions_end(made)).epsilon(0.02));
    }
  }

  // Megatron-LM overlaps reductions with weight-gradient GEMMs from 2022 on, which parts of a
  // backward have apart.
  TEST_CASE("backwards whose parts take longer than the whole stay whole") {
    std::string text = kColocated;
    for (std::size_t at = 0; (at = text.find("\"pp\": 4, \"tp\": 2", at)) != std::string::npos;)
      text.replace(at, 16, "\"pp\": 2, \"tp\": 4, \"sp\": true");
    Scenario scenario = varied_images(text);
    for (const bool hides : {false, true}) {
      scenario.training.software = hides ? "megatron-2022" : "megatron-2021";
      const HardwareProfile profile = scenario_profile(scenario, test::file_text);
      for (const std::uint64_t at : {0, 1, 2}) {
        const MadeSearched made = make_searched(scenario, *scenario.layout, profile, at);
        const auto weighs = [](const StageCurves& stage) {
          return stage.weight.square > 0 || stage.weight.linear > 0 || stage.weight.constant > 0;
        };
        for (const Branch& branch : made.plan.branches) {
          const std::vector<StageCurves>& stages = branch.costs.stages->ways.front().stages;
          CHECK(std::any_of(stages.begin(), stages.end(), weighs) == !hides);
        }
        const auto table = timetable(step_costs(scenario.model, made.plan, made.batch, made.step,
                                                lane_groups(made.plan, made.step).groups.front()),
                                     made.step.orders);
        CHECK(std::get<Timetable>(table).makespan.count() ==
              doctest::Approx(actions_end(made)).epsilon(0.02));
      }
    }
  }

  TEST_CASE(
      "sub-microbatches: as many as the items fill, alike in tokens, in the microbatch's lane") {
    const Scenario scenario = varied_images(kColocated);
    const Layout& layout = *scenario.layout;
    const Plan plan = make_plan(scenario, layout);
    const Batch batch = batch_of_step(scenario, 0);
    const WorkTable works = make_step_plan(scenario, layout, plan, batch).works;
    const auto items_of = [&](std::uint32_t index) {
      const Work& work = works.works[works.place_of(0, index, 0, 0)];
      return static_cast<int>(work.items.end - work.items.begin);
    };
    int two = 0;
    for (std::uint32_t k = 0; k < 8; ++k) {
      int images = 0;  // of two samples
      for (const std::uint32_t s : {2 * k, 2 * k + 1})
        images += static_cast<int>(batch.samples[s].items.size()) - 1;  // one is text
      const int first = items_of(2 * k), second = items_of(2 * k + 1);
      CHECK(first + second == images);
      // ⌈images / 2⌉ parts, at most two.
      if (images <= 2) CHECK(second == 0);
      if (images > 2) CHECK(std::abs(first - second) <= 1);
      two += second > 0 ? 1 : 0;
    }
    CHECK(two > 4);
  }

  TEST_CASE("actions recompute no more than the device's memory requires") {
    std::string text = kColocated;
    text.replace(text.find("\"vpp\": 3"), 8, "\"vpp\": 3, \"recompute\": \"full\"");
    Scenario scenario = varied_images(text);
    HardwareProfile profile = scenario_profile(scenario, test::file_text);
    const auto peak = [&](const MadeSearched& made) {
      Bytes most{};
      for (const RankMemory& rank : predict_memory(made.program, made.timeline))
        most = std::max(most, rank.peak);
      return most;
    };
    const auto recomputed = [](const MadeSearched& made) {
      int count = 0;
      for (const Actions& actions : made.step.orders)
        for (const Action& action : actions)
          count +=
              is_forward(action) && action.branch == 1 && action.recipe != Recipe::none ? 1 : 0;
      return count;
    };
    const MadeSearched roomy = make_searched(scenario, *scenario.layout, profile);
    CHECK(recomputed(roomy) == 0);
    // Memory for a quarter of what that takes in addition to what is always resident: other orders
    // alone do not suffice.
    Scenario tight = scenario;
    store_planned(roomy.layout, roomy.plan, tight);
    Bytes most{};
    for (auto& [module, costs] : tight.planner_costs)
      for (double& room : costs.stages.value().room) {
        const Bytes fixed = scenario.cluster.device.memory - Bytes(std::llround(room));
        room = static_cast<double>((peak(roomy) - fixed).value) / 4;
        most = std::max(most, fixed + Bytes(std::llround(room)));
      }
    const MadeSearched tighter = make_searched(tight, *tight.layout, profile);
    CHECK(recomputed(tighter) > 0);
    CHECK(recomputed(tighter) < 8 * 12);  // of 8 works on 12 stages
    // Curves of kept bytes have the same error as those of seconds.
    CHECK(static_cast<double>(peak(tighter).value) < 1.02 * static_cast<double>(most.value));
    // If everything is recomputed, there is nothing left to choose.
    Scenario lean = tight;
    for (auto& [module, costs] : lean.planner_costs)
      costs.stages->ways.erase(costs.stages->ways.begin(), costs.stages->ways.end() - 1);
    const MadeSearched leanest = make_searched(lean, *lean.layout, profile);
    CHECK(recomputed(leanest) == 8 * 12);
    CHECK(actions_end(tighter) < actions_end(leanest));
  }

  TEST_CASE(
      "a step is the same on whichever rank it is planned, and its Program holds no durations") {
    const Scenario scenario = varied_images(kColocated);
    const HardwareProfile profile = scenario_profile(scenario, test::file_text);
    const MadeSearched made = make_searched(scenario, *scenario.layout, profile);
    Scenario stored = scenario;
    store_planned(made.layout, made.plan, stored);
    CHECK(is_split(stored, made.layout));
    CHECK(make_step_plan(stored, made.layout, make_plan(stored, made.layout), made.batch) ==
          made.step);
    Scenario slower = stored;
    for (auto& [module, costs] : slower.planner_costs)
      for (StageCurves& stage : costs.stages.value().ways.front().stages) stage.forward.linear *= 2;
    CHECK(hash(lower(stored, made.layout, made.plan, made.step, made.batch)) ==
          hash(lower(slower, made.layout, made.plan, made.step, made.batch)));
  }

  TEST_CASE("layouts that cannot be searched are refused, and the message says what can") {
    const Scenario scenario = varied_images(kColocated);
    const auto refused = [&](const Layout& layout) {
      const auto why = check_layout(scenario, layout);
      return why ? why->reason : std::string();
    };
    CHECK(refused(*scenario.layout).empty());
    Layout layout = *scenario.layout;
    layout.encoder_microbatches = 12;
    CHECK(refused(layout) ==
          "planner dip splits every microbatch into equally many encoder microbatches; "
          "encoder_microbatches must be a multiple of microbatches, 8 (got 12)");
    layout = *scenario.layout;
    layout.encoder_order = EncoderOrder::in_turn;
    CHECK(refused(layout) ==
          "planner dip overlaps encoders with the language module, but encoder_order in-turn runs "
          "them before it; use interleaved or phases (kept if no better order is found)");
    Scenario stated = scenario;
    stated.planner_costs[ModuleId(0)].stages = StageCosts{{{Recipe::none, {{}, {}}}}, {}};
    CHECK(check_layout(stated, *stated.layout)->reason ==
          "vision: stage_costs lists 2 stages, but the module has 4; leave it out");
    layout = *scenario.layout;
    layout.planner = Planning::none;
    layout.encoder_microbatches = 0;
    CHECK(refused(layout) == "vision: sub_microbatch applies only to planner dip; leave it out");
    layout = *scenario.layout;
    layout.placement = Placement::homogeneous;
    layout.encoder_microbatches = 0;
    layout.modules.assign(3, layout.modules[2]);
    CHECK(refused(layout) ==
          "planner dip orders one pipeline per module, but a homogeneous layout joins them into "
          "one; use placement colocated");
  }
}

}  // namespace polyphony
