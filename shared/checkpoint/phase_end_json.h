// The record of a phase's end (shared/scenario_io/phases.h), phase.json in the folder of its run:
// {"polyphony_phase": 1, "steps": 300, "ended_at_step": 300}. The numbers differ if the training
// stopped by itself (run --stop-accuracy, --stop-patience).
#pragma once

#include <cstdint>
#include <string>

namespace polyphony {

// Writes the record of a phase's end. `steps`: training.steps of its scenario.
void record_end(const std::string& folder, std::int64_t steps, std::int64_t ended_at_step);
// Returns whether a phase of so many steps has ended: its newest checkpoint is of the last step, or
// of the step that the record names.
bool has_ended(const std::string& folder, std::int64_t steps);

}  // namespace polyphony
