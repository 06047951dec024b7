#include "sim/plan_answers/joint_answer.h"

#include "shared/check/check.h"
#include "shared/scenario/typical_batch.h"
#include "sim/prediction/figures.h"

namespace polyphony::sim {

std::variant<JointAnswer, Infeasible> answer_joint(const Scenario& scenario,
                                                   const HardwareProfile& profile, int stages) {
  JointAnswer answer{&scenario, stages, {}};
  for (const Balance balance : {Balance::aware, Balance::unaware}) {
    auto outcome = joint_split(scenario, profile, stages, balance);
    if (const auto* no = std::get_if<Infeasible>(&outcome)) return *no;
    JointRow row{std::get<JointSplit>(std::move(outcome)), "", {}, {}};
    if (const auto no = check_layout(scenario, row.split.layout)) {
      row.refused = no->reason;
    } else {
      const auto predicted = predict(scenario, row.split.layout, typical_batch(scenario), profile,
                                     Predictor::estimate);
      if (const auto* missing = std::get_if<Infeasible>(&predicted)) {
        row.refused = missing->reason;
      } else {
        const Figures found = figures(scenario, std::get<Prediction>(predicted));
        row.step = found.step;
        row.memory = found.peak_memory;
      }
    }
    answer.rows.push_back(std::move(row));
  }
  return answer;
}

}  // namespace polyphony::sim
