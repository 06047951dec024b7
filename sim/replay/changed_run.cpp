#include "sim/replay/changed_run.h"

#include "shared/check/check.h"
#include "shared/files/whole.h"
#include "shared/plan/plan.h"
#include "sim/load/load.h"
#include "traces/calibrate/calibrate.h"

namespace polyphony::sim {
namespace {

bool same_but_split(Layout a, Layout b) {
  for (Layout* layout : {&a, &b})
    for (ModuleLayout& grid : layout->modules) grid.blocks.clear();
  return a == b;
}

}  // namespace

std::vector<Override> without_old_splits(const std::vector<Override>& overrides,
                                         const JsonValue& layout) {
  std::vector<Override> result = overrides;
  for (const std::string& key : layout.keys()) {
    const JsonValue grid = layout.at(key);
    if (!grid.is_object() || !grid.has("blocks")) continue;
    bool moves = false, said = false;
    for (const Override& override : overrides) {
      const std::vector<std::string>& path = override.path;
      const bool own = path.size() == 3 && path[0] == "layout" && path[1] == key;
      said |= own && path[2] == "blocks";
      moves |= own && (path[2] == "pp" || path[2] == "vpp");
      moves |= path.front() == "model" && path.back() == "layers";
    }
    if (moves && !said) result.push_back(parse_override("layout." + key + ".blocks=null"));
  }
  return result;
}

Scenario changed_scenario(const traces::Measurement& measured,
                          const std::vector<Override>& overrides) {
  const std::string& file = measured.scenario_file;
  const JsonValue document = JsonValue::parse(read_records(file), file);
  Scenario scenario =
      read_scenario_file(file, document.has("layout") && document.at("layout").is_object()
                                   ? without_old_splits(overrides, document.at("layout"))
                                   : overrides);
  read_samples(scenario);
  if (require_layout(scenario) != *measured.scenario.layout &&
      same_but_split(*scenario.layout, *measured.scenario.layout) &&
      scenario.planner_costs == measured.scenario.planner_costs &&
      !is_split(scenario, *scenario.layout))
    scenario.layout = measured.scenario.layout;
  return scenario;
}

bool changes_device(const traces::Measurement& measured, const Scenario& changed) {
  return !measured.pace && changed.cluster.device != measured.scenario.cluster.device;
}

RunProfiles run_profiles(const traces::Measurement& measured, const HardwareProfile& prior) {
  if (measured.pace) return {measured.pace->profile, measured.pace->profile};
  return {prior,
          traces::calibrate(prior, {traces::measured_run(measured)},
                            prior.name + ", fitted to the run", prior.software, measured.source)
              .profile};
}

}  // namespace polyphony::sim
