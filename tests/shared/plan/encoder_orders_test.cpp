// The orders of encoders before a language module: 1F1B of pipelines that join is, on every rank,
// the published closed form; encoders pipelined on the language module's ranks, by hand and of many
// shapes.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "shared/check/check.h"
#include "shared/lower/lower.h"
#include "shared/scenario/typical_batch.h"
#include "shared/schedule/action_text.h"
#include "shared/step/step_plan.h"
#include "shared/verify/verify.h"
#include "tests/shared/support/example_models.h"

namespace polyphony {
namespace {

// Grids and works alone: encoders of these depths on ranks of their own, then the language module.
Plan joined(const std::vector<int>& depths, int language_depth, int microbatches) {
  Plan plan;
  int first = 0;
  const auto add = [&](int depth) {
    ModuleLayout grid;
    grid.pp = grid.ranks = depth;
    grid.first_rank = first;
    first += depth;
    plan.branches.push_back({grid, {}, microbatches});
  };
  for (const int depth : depths) add(depth);
  add(language_depth);
  plan.language = depths.size();
  return plan;
}

// Stage s of an encoder of K stages before L language stages runs K + L - s - 1 forwards ahead, the
// language module's L - s - 1; then a forward and a backward in turn; then the backwards that are
// left. Source: Cornstarch, ICML 2026 (PMLR 306), and its public code's 1F1B over a DAG.
Actions closed_form(std::size_t branch, int stage, int stages_to_go, int microbatches) {
  const int ahead = std::min(stages_to_go, microbatches);
  Actions actions;
  const auto add = [&](ActionKind kind, int work) {
    actions.push_back(make_action(kind, stage, work));
    actions.back().branch = static_cast<std::uint16_t>(branch);
  };
  for (int m = 0; m < ahead; ++m) add(ActionKind::forward, m);
  for (int m = 0; m < microbatches - ahead; ++m) {
    add(ActionKind::forward, m + ahead);
    add(ActionKind::backward, m);
  }
  for (int m = microbatches - ahead; m < microbatches; ++m) add(ActionKind::backward, m);
  return actions;
}

// An encoder and a language module on the same ranks.
Plan on_same_ranks(const ModuleLayout& encoder, const ModuleLayout& language, int works,
                   int microbatches) {
  Plan plan;
  plan.branches.push_back({encoder, {}, works});
  plan.branches.push_back({language, {}, microbatches});
  plan.language = 1;
  return plan;
}
ModuleLayout deep(int pp, int vpp = 1) {
  ModuleLayout grid;
  grid.pp = grid.ranks = pp;
  grid.vpp = vpp;
  return grid;
}
// "eF0.0 F0.0": e stands before actions of the encoder.
std::string text(const Actions& actions) {
  std::string text;
  for (const Action& action : actions)
    text +=
        (text.empty() ? "" : " ") + std::string(action.branch == 0 ? "e" : "") + to_text({action});
  return text;
}
std::string order(EncoderOrder encoders, const Plan& plan, int rank,
                  ScheduleKind schedule = ScheduleKind::one_f_one_b) {
  Layout layout{.placement = Placement::colocated, .modules = {}, .schedule = schedule};
  layout.encoder_order = encoders;
  return text(actions_of(layout, plan, rank));
}

// Vision and projector, language; four encoder blocks, six of the language module.
Layout colocated(const ModuleLayout& encoder, const ModuleLayout& language) {
  return {.placement = Placement::colocated, .modules = {encoder, encoder, language}};
}

}  // namespace

TEST_CASE("encoders pipelined on the language module's ranks: all forwards first") {
  const Plan plan = on_same_ranks(deep(2), deep(2), 2, 2);
  CHECK(order(EncoderOrder::phases, plan, 0) == "eF0.0 eF0.1 F0.0 F0.1 B0.0 B0.1 eB0.0 eB0.1");
  CHECK(order(EncoderOrder::phases, plan, 1) == "eF1.0 eF1.1 F1.0 B1.0 F1.1 B1.1 eB1.0 eB1.1");
  // One work of two microbatches; two virtual stages, one after another.
  CHECK(order(EncoderOrder::phases, on_same_ranks(deep(2), deep(2), 1, 2), 1) ==
        "eF1.0 F1.0 B1.0 F1.1 B1.1 eB1.0");
  CHECK(order(EncoderOrder::phases, on_same_ranks(deep(2, 2), deep(2), 1, 1), 0) ==
        "eF0.0 eF2.0 F0.0 B0.0 eB2.0 eB0.0");
  // In turn: the language module's pipeline drains after each encoder microbatch.
  CHECK(order(EncoderOrder::in_turn, plan, 0) == "eF0.0 F0.0 B0.0 eB0.0 eF0.1 F0.1 B0.1 eB0.1");
}

TEST_CASE("encoders pipelined on the language module's ranks: interleaved") {
  const Plan plan = on_same_ranks(deep(2), deep(2), 4, 4);
  CHECK(order(EncoderOrder::interleaved, plan, 1) ==
        "eF1.0 eF1.1 F1.0 B1.0 F1.1 B1.1 eF1.2 eB1.0 eF1.3 eB1.1 F1.2 B1.2 F1.3 B1.3 eB1.2 eB1.3");
  // Works of two microbatches: with the first forward, with the last back.
  CHECK(order(EncoderOrder::interleaved, on_same_ranks(deep(2), deep(2), 2, 4), 1) ==
        "eF1.0 F1.0 B1.0 F1.1 B1.1 eF1.1 eB1.0 F1.2 B1.2 F1.3 B1.3 eB1.1");
  // Two virtual stages of each: four of one pipeline.
  const Plan both = on_same_ranks(deep(2, 2), deep(2, 2), 2, 2);
  CHECK(order(EncoderOrder::interleaved, both, 1, ScheduleKind::interleaved) ==
        "eF1.0 eF1.1 eF3.0 eF3.1 F1.0 F1.1 F3.0 B3.0 F3.1 B3.1 B1.0 B1.1 eB3.0 eB3.1 eB1.0 eB1.1");
}

TEST_CASE("encoders of every depth, order and number of microbatches lower to valid Programs") {
  int sound = 0;
  for (const int pp : {1, 2, 4})
    for (const int encoder_pp : {1, 2, 4})
      for (const int encoder_vpp : {1, 2})
        for (const int vpp : {1, 3})
          for (const int works : {0, 2, 4})
            for (const EncoderOrder encoders :
                 {EncoderOrder::in_turn, EncoderOrder::phases, EncoderOrder::interleaved})
              for (const bool apart : {false, true}) {
                Scenario scenario = examples::small_on_cpu(8, 8);
                scenario.model.modules[2].layers = 12;
                scenario.model.modules[0].layers = 8;
                Layout layout = colocated(deep(encoder_pp, encoder_vpp), deep(pp, vpp));
                layout.schedule = vpp > 1 ? ScheduleKind::interleaved : ScheduleKind::one_f_one_b;
                layout.microbatches = 4;
                layout.encoder_microbatches = works;
                layout.encoder_order = encoders;
                if (apart) {
                  layout.placement = Placement::non_colocated;
                  layout.modules[0].ahead = layout.modules[1].ahead = works;
                  layout.modules[2].first_rank = encoder_pp;
                } else {
                  for (ModuleLayout& grid : layout.modules) grid.ranks = std::max(pp, encoder_pp);
                }
                if (check_layout(scenario, layout)) continue;
                CAPTURE(describe(scenario.model, layout));
                const Plan plan = make_plan(scenario, layout);
                const Batch batch = typical_batch(scenario);
                const StepPlan step = make_step_plan(scenario, layout, plan, batch);
                CHECK(check_actions(scenario.model, plan, step).empty());
                const std::vector<Fault> faults =
                    verify(lower(scenario, layout, plan, step, batch));
                CHECK_MESSAGE(faults.empty(), faults.front().text);
                ++sound;
              }
  CHECK(sound > 100);
}

TEST_CASE("illegal encoder layouts are refused, and the message says what is legal") {
  const Scenario scenario = examples::small_on_cpu(4, 12);
  const auto refused = [&](Layout layout) {
    for (std::size_t m = 0; m < 3; ++m)
      if (layout.placement == Placement::colocated) layout.modules[m].ranks = 4;
    const auto why = check_layout(scenario, layout);
    return why ? why->reason : "";
  };
  Layout layout = colocated(deep(4), deep(2));
  layout.microbatches = 3;
  CHECK(refused(layout) ==
        "vision: pp must divide the pp of language on the same ranks, 2 (got 4); nearest legal: 2");
  layout = colocated(deep(1), deep(2));
  layout.microbatches = 3;
  layout.encoder_order = EncoderOrder::interleaved;
  CHECK(refused(layout) ==
        "vision: encoder_order interleaved joins it into one pipeline with language; use the same "
        "pp, 2, or encoder_order phases");
  layout.modules[0] = layout.modules[1] = deep(2);
  CHECK(refused(layout) ==
        "encoder_order interleaved needs a multiple of pp 2 microbatches (got 3); nearest legal: 2 "
        "or "
        "4");
  layout.schedule = ScheduleKind::zero_bubble;
  CHECK(
      refused(layout) ==
      "encoder_order interleaved needs schedule 1f1b or interleaved (got zero-bubble); use one of "
      "them, or encoder_order phases");
  layout.modules[0].ahead = layout.modules[1].ahead = 1;
  CHECK(refused(layout) ==
        "vision: ahead applies only to an encoder with ranks of its own; leave it out");
  layout = colocated(deep(2, 2), deep(2));
  layout.placement = Placement::non_colocated;
  layout.modules[2].first_rank = 2;
  layout.microbatches = 3;
  CHECK(refused(layout) ==
        "vision: virtual stages run schedule interleaved, which needs a multiple of pp 2 "
        "microbatches "
        "(got 3); nearest legal: 2 or 4");
  layout.microbatches = 4;
  CHECK(refused(layout) == "");
  layout.encoder_order = EncoderOrder::phases;
  CHECK(
      refused(layout) ==
      "encoder_order phases applies only to encoders on the language module's ranks; leave it out");
  layout = colocated(deep(1), deep(2));
  layout.placement = Placement::homogeneous;
  layout.modules[0] = layout.modules[1] = deep(2);
  layout.encoder_microbatches = 1;
  CHECK(refused(layout) ==
        "encoder_microbatches applies only to encoders with grids of their own; leave it out");
}

TEST_CASE("1f1b of encoders that join has the published closed-form time") {
  constexpr int kDeepest = 4, kMostEncoders = 4, kMostMicrobatches = 12;
  const Layout layout{.placement = Placement::non_colocated, .modules = {}};
  std::vector<std::vector<int>> branches{{}};
  for (std::size_t next = 0; next < branches.size(); ++next) {
    const std::vector<int> depths = branches[next];
    for (int depth = 1; depth <= kDeepest && depths.size() < kMostEncoders; ++depth) {
      branches.push_back(depths);
      branches.back().push_back(depth);
    }
    for (int language = 1; language <= kDeepest; ++language)
      for (int microbatches = 1; microbatches <= kMostMicrobatches; ++microbatches) {
        const Plan plan = joined(depths, language, microbatches);
        bool same = true;
        for (std::size_t b = 0; b < plan.branches.size(); ++b) {
          const ModuleLayout& grid = plan.branches[b].grid;
          const int after = b == plan.language ? 0 : language;
          for (int s = 0; s < grid.pp; ++s)
            same = same && actions_of(layout, plan, grid.first_rank + s) ==
                               closed_form(b, s, grid.pp + after - s - 1, microbatches);
        }
        CAPTURE(depths.size());
        CAPTURE(language);
        CAPTURE(microbatches);
        CHECK(same);
      }
  }
  CHECK(branches.size() == 1 + 4 + 16 + 64 + 256);
}

// Published as "colocated": stage s has the s-th part of every encoder, one after another; here
// they share their ranks in a mixed layout.
TEST_CASE(
    "1f1b of chained encoders: each stage runs its part of all encoders, backwards in reverse") {
  const Layout layout{.placement = Placement::mixed, .modules = {}};
  for (const int depth : {1, 2, 3})
    for (const int language : {1, 2, 4}) {
      Plan plan = joined({depth, depth}, language, 8);
      plan.branches[1].grid.first_rank = 0;
      plan.branches[2].grid.first_rank = depth;
      for (int s = 0; s < depth; ++s) {
        Actions wanted;
        for (const Action& action : closed_form(0, s, depth + language - s - 1, 8))
          for (const int encoder : {0, 1}) {
            wanted.push_back(action);
            wanted.back().branch =
                static_cast<std::uint16_t>(is_forward(action) ? encoder : 1 - encoder);
          }
        CHECK(actions_of(layout, plan, s) == wanted);
      }
      CHECK(actions_of(layout, plan, depth) == closed_form(2, 0, language - 1, 8));
    }
}

}  // namespace polyphony
