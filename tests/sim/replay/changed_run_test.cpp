// The scenario and the profiles that a changed replay starts from.
#include "sim/replay/changed_run.h"

#include <doctest/doctest.h>

#include "shared/hardware/devices.h"
#include "tests/shared/support/scenario_files.h"

namespace polyphony::tests {
namespace {

using namespace sim;

// The overrides that are left, by their text.
std::vector<std::string> kept(const std::vector<std::string>& texts) {
  const JsonValue layout = JsonValue::parse(
      R"({"placement": "non-colocated", "microbatches": 4, "vision": {"pp": 1},
          "language": {"pp": 2, "blocks": [3, 5]}})",
      "layout.json");
  std::vector<Override> overrides;
  for (const std::string& text : texts) overrides.push_back(parse_override(text));
  std::vector<std::string> result;
  for (const Override& override : without_old_splits(overrides, layout))
    result.push_back(override.text);
  return result;
}

}  // namespace

TEST_CASE("a split is dropped where the number of stages or layers changes, and only there") {
  using Texts = std::vector<std::string>;
  CHECK(kept({"cluster.nic=1GBps"}) == Texts{"cluster.nic=1GBps"});
  CHECK(kept({"layout.language.pp=4"}) ==
        Texts{"layout.language.pp=4", "layout.language.blocks=null"});
  CHECK(kept({"model.language.layers=6"}).back() == "layout.language.blocks=null");
  CHECK(kept({"layout.vision.pp=2"}) == Texts{"layout.vision.pp=2"});  // states no split
  const Texts own{"layout.language.vpp=2", "layout.language.blocks=[2,2,2,2]"};
  CHECK(kept(own) == own);
}

TEST_CASE("a rehearsal runs on its own profile, and on no other device") {
  traces::Measurement run;
  run.scenario = test::scenario_at("scenarios/rehearse_8.json");
  Scenario changed = run.scenario;
  CHECK_FALSE(changes_device(run, changed));
  changed.cluster.device = find_device("H100")->device;
  CHECK(changes_device(run, changed));
  run.pace.emplace();
  run.pace->profile.name = "paced";
  CHECK_FALSE(changes_device(run, changed));
  CHECK(run_profiles(run, {}).prior.name == "paced");
  CHECK(run_profiles(run, {}).fitted.name == "paced");
}

}  // namespace polyphony::tests
