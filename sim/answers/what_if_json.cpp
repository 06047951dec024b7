#include "sim/answers/answers_json.h"

namespace polyphony::sim {

nlohmann::json to_json(const WhatIf& what_if) {
  nlohmann::json result{{"set", what_if.set}};
  const Unchanged& unchanged = what_if.unchanged;
  if (!unchanged.figures) {
    result["unchanged"] = {{"no_answer", unchanged.why_not}};
    return result;
  }
  const Figures& before = *unchanged.figures;
  result["unchanged"] = {{"step_seconds", before.step.count()},
                         {"tokens_per_second_per_rank", before.tokens_per_second_per_rank},
                         {"mfu", before.model_flops_utilization},
                         {"peak_memory_bytes", before.peak_memory.value},
                         {"fits", before.fits()}};
  if (!unchanged.layout.empty()) result["unchanged"]["layout"] = unchanged.layout;
  result["step_change"] = what_if.changed.step / before.step - 1;
  return result;
}

}  // namespace polyphony::sim
