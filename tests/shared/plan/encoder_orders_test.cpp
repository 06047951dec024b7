// The orders of encoders before a language module: 1F1B of pipelines that join is, on every rank, the
// published closed form.
#include <doctest/doctest.h>

#include <algorithm>

#include "shared/plan/step_plan.h"

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
// language module's L - s - 1; then a forward and a backward in turn; then the backwards that are left.
// Source: Cornstarch, ICML 2026 (PMLR 306), and its public code's 1F1B over a DAG.
Turns closed_form(std::size_t branch, int stage, int stages_to_go, int microbatches) {
  const int ahead = std::min(stages_to_go, microbatches);
  Turns turns;
  const auto add = [&](TurnKind kind, int work) {
    turns.push_back(make_turn(kind, stage, work));
    turns.back().branch = static_cast<std::uint16_t>(branch);
  };
  for (int m = 0; m < ahead; ++m) add(TurnKind::forward, m);
  for (int m = 0; m < microbatches - ahead; ++m) {
    add(TurnKind::forward, m + ahead);
    add(TurnKind::backward, m);
  }
  for (int m = microbatches - ahead; m < microbatches; ++m) add(TurnKind::backward, m);
  return turns;
}

}  // namespace

TEST_CASE("1f1b of encoders that join is the published closed form") {
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
            same = same && turns_of(layout, plan, grid.first_rank + s) ==
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

// Published as "colocated": stage s has the s-th part of every encoder, one after another; here they
// share their ranks in a mixed layout.
TEST_CASE("1f1b of chained encoders: each stage runs its part of all, and back in reverse") {
  const Layout layout{.placement = Placement::mixed, .modules = {}};
  for (const int depth : {1, 2, 3})
    for (const int language : {1, 2, 4}) {
      Plan plan = joined({depth, depth}, language, 8);
      plan.branches[1].grid.first_rank = 0;
      plan.branches[2].grid.first_rank = depth;
      for (int s = 0; s < depth; ++s) {
        Turns wanted;
        for (const Turn& turn : closed_form(0, s, depth + language - s - 1, 8))
          for (const int encoder : {0, 1}) {
            wanted.push_back(turn);
            wanted.back().branch =
                static_cast<std::uint16_t>(is_forward(turn) ? encoder : 1 - encoder);
          }
        CHECK(turns_of(layout, plan, s) == wanted);
      }
      CHECK(turns_of(layout, plan, depth) == closed_form(2, 0, language - 1, 8));
    }
}

}  // namespace polyphony
