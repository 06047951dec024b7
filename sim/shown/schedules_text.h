// The answers of `polyphony schedules` as text tables, CSV and charts.
#pragma once

#include <string>

#include "sim/schedules/compared_schedules.h"
#include "sim/schedules/ordered_step.h"

namespace polyphony::sim {

// Returns a table of the schedules that can run, the reasons of the others, and the lower bound.
// `options`: those of the comparison.
std::string comparison_text(const ScheduleComparison& comparison, const CompareOptions& options);
// Returns one row a schedule; cells of refused ones are empty but for the refusal.
std::string comparison_csv(const ScheduleComparison& comparison);
// Returns an SVG file with the actions of every schedule that can run, on one time axis.
std::string comparison_chart(const ScheduleComparison& comparison);

std::string ordered_text(const OrderedStep& step);
// Returns an SVG file: the Gantt chart of the predicted step.
std::string ordered_chart(const OrderedStep& step);

}  // namespace polyphony::sim
