#include "shared/hardware/hardware_json.h"
#include "sim/answers/answers_json.h"

namespace polyphony::sim {

nlohmann::json to_json(const traces::Calibration& fitted) {
  nlohmann::json parameters = nlohmann::json::array(), runs = nlohmann::json::array();
  for (const traces::FittedParameter& p : fitted.parameters)
    parameters.push_back({{"name", p.name},
                          {"prior", p.prior},
                          {"value", p.value},
                          {"standard_error", p.standard_error},
                          {"rows", p.rows},
                          {"informed", p.informed}});
  for (const traces::RunError& r : fitted.runs)
    runs.push_back(
        {{"run", r.label},
         {"measured_seconds", r.measured.count()},
         {"before", r.before},
         {"after", r.after},
         {"repeatability", r.repeatability},
         {"shared_cores", shared_cores_json(r.shared_cores)},
         {"jitter_repeatability",
          r.jitter_repeatability ? nlohmann::json(*r.jitter_repeatability) : nlohmann::json()}});
  return {{"parameters", parameters},
          {"runs", runs},
          {"step_error", fitted.profile.step_error},
          {"profile", nlohmann::json::parse(polyphony::to_json(fitted.profile))}};
}

}  // namespace polyphony::sim
