// The answers of `polyphony schedules --format json`, and the schema of --times.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "sim/schedules/compared_schedules.h"
#include "sim/schedules/ordered_step.h"

namespace polyphony::sim {

nlohmann::json to_json(const ScheduleComparison& comparison);
nlohmann::json to_json(const OrderedStep& step);
std::string schedule_times_schema();  // of `polyphony schedules --times`

}  // namespace polyphony::sim
