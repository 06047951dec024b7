// The closed-form screen compared with the Program, on random legal layouts: its memory is never
// above the Program's peak and seldom far below; bound ≤ estimate ≤ simulate; its answer does not
// depend on earlier questions.
//
// POLYPHONY_SCREEN_LAYOUTS sets the number of layouts (scripts/screen_truth); then the figures of
// every layout are printed.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <optional>

#include "shared/chance/misses.h"
#include "shared/check/check.h"
#include "shared/hardware/devices.h"
#include "shared/scenario/typical_batch.h"
#include "shared/scenario_io/scenario_profile.h"
#include "shared/screen/bound.h"
#include "shared/search/random_layout.h"
#include "sim/prediction/need.h"
#include "sim/prediction/predict.h"
#include "tests/shared/support/example_models.h"
#include "tests/sim/prediction/screen_questions.h"

namespace polyphony::tests {
namespace {

constexpr int kLayouts = 300;
constexpr double kMostOps = 60e3;  // of a Program lowered whole

int asked() {
  const char* given = std::getenv("POLYPHONY_SCREEN_LAYOUTS");
  return given ? std::atoi(given) : 0;
}

std::optional<sim::Prediction> predicted(const Question& question, const Layout& layout,
                                         const HardwareProfile& profile) {
  // Folded if that is exact (shared/lower/fold.h), which requires contexts with equal tokens.
  const ModuleLayout& grid = layout.modules.back();
  if (layout.placement == Placement::homogeneous && (grid.cp & (grid.cp - 1)) == 0 &&
      question.scenario.data.global_batch % (grid.dp() * layout.microbatches) == 0) {
    auto folded = sim::predict_folded(question.scenario, layout, profile);
    if (auto* found = std::get_if<sim::Prediction>(&folded)) return std::move(*found);
  }
  if (sim::need_of(question.scenario, layout, {}).ops > kMostOps) return {};
  auto whole = sim::predict(question.scenario, layout, typical_batch(question.scenario), profile,
                            question.small ? sim::Predictor::simulate : sim::Predictor::estimate);
  if (auto* found = std::get_if<sim::Prediction>(&whole)) return std::move(*found);
  return {};
}

Bytes peak(const sim::Prediction& prediction) {
  Bytes most{};
  for (const RankMemory& rank : prediction.memory) most = std::max(most, rank.peak);
  return most;
}

Bytes least_libraries(const sim::Prediction& prediction) {
  Bytes least = prediction.memory.front().libraries;
  for (const RankMemory& rank : prediction.memory) least = std::min(least, rank.libraries);
  return least;
}

// Two of three questions have measured layouts that were slower or faster than predicted.
void know_misses(const Scenario& scenario, int number, HardwareProfile& profile) {
  for (int i = 0; i < number % 3; ++i) {
    const auto measured = random_layout(scenario, static_cast<std::uint64_t>(1000 + i));
    REQUIRE(measured);
    profile.certainty.misses.push_back({"log",
                                        measured_text(scenario),
                                        compared_parts(*measured),
                                        i == 0 ? 0.2 : -0.15,
                                        0.01,
                                        {}});
  }
}

// Copies the images of every third layout over context-parallel ranks, where that is possible.
void copy_images(const Scenario& scenario, int seed, Layout& layout) {
  if (seed % 3 != 0) return;
  Layout copied = layout;
  for (std::size_t m = 0; m < copied.modules.size(); ++m)
    if (copied.modules[m].cp > 1 && (copied.placement == Placement::homogeneous ||
                                     scenario.model.modules[m].kind != ModuleKind::language))
      copied.modules[m].spread = Spread::copied;
  if (!check_layout(scenario, copied)) layout = copied;
}

struct Ratios {
  std::vector<double> all;
  double at(double part) {
    std::sort(all.begin(), all.end());
    return all.empty() ? 0
                       : all[static_cast<std::size_t>(part * static_cast<double>(all.size() - 1))];
  }
};

}  // namespace

TEST_CASE("the screen agrees with the Program, whatever the layout") {
  const std::vector<Question> questions = screen_questions();
  const int wanted = asked() > 0 ? asked() : kLayouts;
  const int each =
      (wanted + static_cast<int>(questions.size()) - 1) / static_cast<int>(questions.size());
  Ratios memory, steps;
  for (const Question& question : questions) {
    const Scenario& scenario = question.scenario;
    HardwareProfile profile = *shipped_profile(scenario.cluster);
    if (!question.stack.empty()) profile.stack = *find_stack(question.stack);
    take_layer_times(scenario, profile);
    know_misses(scenario, static_cast<int>(&question - questions.data()), profile);
    const Batch batch = typical_batch(scenario);
    Screen screen(scenario, profile, batch);
    CAPTURE(question.name);
    Ratios here, step_here;
    int left_out = 0;
    for (int seed = 0; seed < each; ++seed) {
      CAPTURE(seed);
      std::optional<Layout> layout = random_layout(scenario, static_cast<std::uint64_t>(seed));
      REQUIRE(layout);
      copy_images(scenario, seed, *layout);
      CAPTURE(describe(scenario.model, *layout));
      const Bound bound = screen.bound(*layout);
      CHECK(screen.footprint(*layout) == bound.footprint);
      if (seed % 16 == 0) CHECK(Screen(scenario, profile, batch).bound(*layout) == bound);
      const std::optional<sim::Prediction> prediction = predicted(question, *layout, profile);
      if (!prediction) {
        ++left_out;
        continue;
      }
      const Bytes most = peak(*prediction), libraries = least_libraries(*prediction);
      const Bytes room = screen.room(*layout), limit = scenario.memory_limit();
      if (limit.value > 0) CHECK(room >= std::max(Bytes(1), limit - libraries));
      if (libraries > Bytes(0)) CHECK(room < limit);
      // Otherwise the Program's stages are split differently to fit (shared/split/balanced_plan.h).
      const bool fits = bound.footprint.memory <= scenario.cluster.device.memory;
      if (fits) CHECK(bound.footprint.memory <= most);
      CHECK(bound.step <= prediction->estimate.step());
      CHECK(prediction->estimate.step() <= prediction->step() * (1 + 1e-6));
      CHECK(bound.busiest <= bound.step);
      here.all.push_back(fits ? static_cast<double>(bound.footprint.memory.value) /
                                    static_cast<double>(most.value)
                              : 1);
      step_here.all.push_back(bound.step / prediction->estimate.step());
      if (asked() > 0 && (here.all.back() < 0.9 || here.all.back() > 1 ||
                          step_here.all.back() > 1 || step_here.all.back() < 0.6))
        std::cout << question.name << " seed " << seed << " memory " << here.all.back() << " step "
                  << step_here.all.back() << "  " << describe(scenario.model, *layout) << "\n";
    }
    memory.all.insert(memory.all.end(), here.all.begin(), here.all.end());
    steps.all.insert(steps.all.end(), step_here.all.begin(), step_here.all.end());
    if (asked() > 0)
      std::cout << std::setprecision(3) << question.name << ": " << here.all.size()
                << " layouts, memory of the Program's " << here.at(0) << " " << here.at(0.05) << " "
                << here.at(0.5) << " " << here.at(1) << ", bound of the estimate "
                << step_here.at(0) << " " << step_here.at(0.5) << " " << step_here.at(1) << ", "
                << left_out << " too large" << std::endl;
  }
  CHECK(memory.at(0.05) > 0.9);
  CHECK(memory.at(0.5) > 0.97);
  CHECK(steps.at(0.5) > 0.9);
  if (asked() > 0)
    std::cout << "all " << memory.all.size() << ": memory " << memory.at(0) << " "
              << memory.at(0.01) << " " << memory.at(0.05) << " " << memory.at(0.5) << ", bound "
              << steps.at(0) << " " << steps.at(0.5) << " " << steps.at(1) << "\n";
}

// In each of four encoder microbatches of 256 samples, half of the 512 lanes have one. On any stage
// of the language module there is such a lane. Its activations are three quarters of the peak.
TEST_CASE("an encoder's activations count where only some lanes have an image in a microbatch") {
  const Scenario scenario = examples::vlm_on_h100();
  ModuleLayout encoder, language;
  encoder.shard = language.shard = Shard::full;
  language.recompute = Recompute::full;
  encoder.ranks = language.ranks = 512;
  language.tp = 2;
  language.sp = true;
  language.pp = 4;
  language.vpp = 12;
  const Layout layout{.placement = Placement::colocated,
                      .modules = {encoder, encoder, language},
                      .schedule = ScheduleKind::interleaved,
                      .microbatches = 16,
                      .encoder_microbatches = 4};
  REQUIRE_FALSE(check_layout(scenario, layout));
  const HardwareProfile profile = *shipped_profile(scenario.cluster);
  const Batch batch = typical_batch(scenario);
  const Bytes counted = Screen(scenario, profile, batch).footprint(layout).memory;
  const auto predicted = sim::predict_folded(scenario, layout, profile);
  const Bytes most = peak(std::get<sim::Prediction>(predicted));
  CHECK(counted <= most);
  CHECK(static_cast<double>(counted.value) > 0.8 * static_cast<double>(most.value));
}

}  // namespace polyphony::tests
