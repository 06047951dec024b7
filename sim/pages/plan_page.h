// The HTML page of a plan: time and memory of its stages, and why layers are split where they are.
#pragma once

#include <string>

#include "sim/plan_answers/plan_answer.h"
#include "traces/report/report.h"

namespace polyphony::sim {

// Needs an answer with a layout.
traces::Section plan_section(const PlanAnswer& answer);
// Returns a whole page; `question`: the scenario's file.
traces::Report plan_page(const PlanAnswer& answer, const std::string& question);

}  // namespace polyphony::sim
