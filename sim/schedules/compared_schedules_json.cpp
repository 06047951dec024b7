#include <nlohmann/json.hpp>

#include "sim/schedules/compared_schedules.h"

namespace polyphony::sim {

std::string comparison_json(const ScheduleComparison& comparison) {
  nlohmann::json rows = nlohmann::json::array();
  for (const ComparedSchedule& row : comparison.rows) {
    nlohmann::json one{{"schedule", row.name}};
    if (!row.refusal.empty()) {
      one["refusal"] = row.refusal;
      rows.push_back(one);
      continue;
    }
    std::vector<std::int64_t> peaks;
    for (const Bytes peak : row.table.peak) peaks.push_back(peak.value);
    std::vector<double> drawn;
    for (const Seconds makespan : row.drawn) drawn.push_back(makespan.count());
    one.update({{"setting", row.setting},
                {"makespan_seconds", row.table.makespan.count()},
                {"bound_seconds", row.bound.count()},
                {"bubbles", bubbles(row.table)},
                {"peak_activation_bytes", peaks},
                {"fits", row.fits}});
    if (!drawn.empty()) one["drawn_makespan_seconds"] = drawn;
    rows.push_back(one);
  }
  return nlohmann::json{{"bound_seconds", comparison.bound.count()}, {"schedules", rows}}.dump(2);
}

}  // namespace polyphony::sim
