// Random layouts and models: combinations that the list of features does not contain.
#include <cstdlib>

#include "shared/check/check.h"
#include "shared/search/draws.h"
#include "shared/search/random_layout.h"
#include "tests/exec/parity/parity.h"

namespace polyphony::exec::testing {
namespace {

// Draws what is trained: one setting in four is unusual.
Case draw_model(std::uint64_t seed) {
  constexpr std::uint64_t kStream = 1 << 20;  // separate from the stream of the layout
  Draws draws(seed, kStream);
  Case c;
  c.drawn = seed;
  const auto also = [&](const char* what) {
    const bool drawn = draws.chance(25);
    if (drawn) c.name += std::string(what) + ", ";
    return drawn;
  };
  c.diffusion = also("diffusion");
  c.deep = also("deepstack");
  c.audio = also("audio");
  if (also("experts")) c.experts = 4;
  if (also("vision frozen")) c.frozen = {ModuleKind::vision};
  if (also("language lora"))
    c.lora = {ModuleKind::language};
  else if (also("language frozen"))
    c.frozen.push_back(ModuleKind::language);
  if (draws.chance(25)) {
    const ModelFeature feature = draws.pick(model_features());
    if (feature.experts > 0) c.experts = feature.experts;
    c.name += feature.name + ", ";
    c.variant = [feature](Model& model) {
      feature.change(model.modules[language_module(model).value]);
    };
  }
  c.oblong = also("oblong images");
  return c;
}

}  // namespace

std::uint64_t seeds_asked(std::uint64_t in_ci) {
  const char* const asked = std::getenv("POLYPHONY_SEEDS");
  return asked == nullptr ? in_ci : std::stoull(asked);
}

std::vector<Case> sampled(std::size_t step, const std::vector<Case>& cases) {
  if (std::getenv("POLYPHONY_SEEDS") != nullptr) return cases;
  std::vector<Case> some;
  for (std::size_t i = 0; i < cases.size(); i += step) some.push_back(cases[i]);
  return some;
}

std::vector<Case> random_cases(std::uint64_t first, std::uint64_t count) {
  std::vector<Case> cases;
  if (const char* const asked = std::getenv("POLYPHONY_FIRST_SEED")) first = std::stoull(asked);
  for (std::uint64_t seed = first; cases.size() < count; ++seed) {
    Case c = draw_model(seed);
    const Scenario scenario = make_scenario(c);
    const std::optional<Layout> layout = random_layout(scenario, seed);
    if (!layout || check_runnable(scenario, *layout)) continue;
    c.layout = *layout;
    c.name = "seed " + std::to_string(seed) + ": " + c.name + brief(scenario.model, c.layout);
    cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace polyphony::exec::testing
