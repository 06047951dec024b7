#include "sim/answers/answers_json.h"

namespace polyphony::sim {

nlohmann::json to_json(const PlanAnswer& answer) {
  nlohmann::json modules = nlohmann::json::array(), stages = nlohmann::json::array();
  for (const PlannedModule& m : answer.modules)
    modules.push_back({{"module", m.name},
                       {"kind", m.kind},
                       {"trainable", m.trainable},
                       {"parameters", m.parameters}});
  nlohmann::json result{{"modules", modules}};
  if (!answer.program) return result;
  for (const PlannedStage& s : answer.stages)
    stages.push_back({{"stage", s.stage},
                      {"ranks", s.ranks},
                      {"grid", s.grid},
                      {"layers", s.layers},
                      {"parameters_per_rank", s.parameters_per_rank}});
  result["layout"] = answer.layout;
  result["stages"] = stages;
  result["program"] = {{"ranks", answer.program->ranks},
                       {"ops", answer.program->ops},
                       {"messages", answer.program->messages},
                       {"hash", std::to_string(answer.program->hash)}};
  if (!answer.simulation_only.empty()) result["simulation_only"] = answer.simulation_only;
  return result;
}

}  // namespace polyphony::sim
