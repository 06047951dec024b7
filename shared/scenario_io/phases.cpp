#include "shared/scenario_io/phases.h"

#include "shared/checkpoint/carried_weights.h"
#include "shared/scenario_io/scenario_layers.h"

namespace polyphony {
namespace {

// Throws InputError if `next` cannot begin with the parameters of `earlier`.
void check_carried(const TrainingPhase& earlier, const TrainingPhase& next,
                   const ScenarioLayers& layers) {
  const auto refuse = [&](const std::string& module, const std::string& what,
                          const std::string& fix) {
    const ScenarioLayers::Place changed = layers.place_of("/model/" + module),
                                &phase = layers.phase_place();
    const bool in_phase = changed.pointer.starts_with(phase.pointer + "/");
    throw InputError(phase.file, in_phase ? changed.pointer : phase.pointer, what, fix);
  };
  if (const auto fault = carry_fault(model_parameters(earlier.scenario.model), next.scenario.model))
    refuse(fault->module,
           "phase \"" + next.name + "\" cannot begin with the parameters of phase \"" +
               earlier.name + "\": " + fault->what,
           fault->fix);
  for (std::size_t m = 0; m < next.scenario.weights.size(); ++m)
    if (!(next.scenario.weights[m] == earlier.scenario.weights[m]))
      refuse(next.scenario.model.modules[m].name,
             "phase \"" + next.name + "\" begins with the parameters of phase \"" + earlier.name +
                 "\", not with other published weights",
             "state \"weights\" and \"hf\" outside of \"phases\"");
}

}  // namespace

std::vector<std::string> phase_names(const std::string& text, const std::string& file,
                                     const LoadText& load) {
  return ScenarioLayers(text, file, load).phases();
}

std::vector<TrainingPhase> read_phases(const std::string& text, const std::string& file,
                                       const LoadText& load,
                                       const std::vector<Override>& overrides) {
  const ScenarioLayers whole(text, file, load);
  const std::vector<std::string> names = whole.phases();
  std::vector<TrainingPhase> phases;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const ScenarioLayers layers = whole.of_phase(i);
    phases.push_back({names[i], read_layers(layers, load, overrides)});
    if (i > 0) check_carried(phases[i - 1], phases[i], layers);
  }
  return phases;
}

}  // namespace polyphony
