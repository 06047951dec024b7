// JSON Schemas (draft 2020-12) of the output of `--format json`. They are generated from the same
// tables of keys as the output itself (sim/text/json_keys.h). `polyphony schema NAME` prints them.
#pragma once

#include <string>

#include "sim/step_answers/what_if.h"
#include "sim/text/json_keys.h"

namespace polyphony::sim {

std::string step_schema();        // of `polyphony simulate`
std::string why_schema();         // of `polyphony why`
std::string comparison_schema();  // of `polyphony compare` and `polyphony rehearse`
std::string ask_schema();
std::string import_schema();      // of `polyphony import`
std::string emit_schema();        // of `polyphony emit`         // of `polyphony ask`
std::string sweep_schema();       // of `polyphony sweep`
std::string phase_plan_schema();  // of `polyphony sweep` of a scenario with phases
std::string vary_schema();        // of `polyphony sweep --vary`
std::string plan_schema();        // of `polyphony plan`
std::string joint_schema();       // of `polyphony plan --stages`
std::string stream_schema();      // of `polyphony simulate --batches`
std::string segments_schema();    // of `polyphony plan --segments`
std::string trace_schema();       // of `polyphony trace`

// Parts of the schemas.
std::string schema_document(const std::string& title, const nlohmann::json& root,
                            const nlohmann::json& definitions);
nlohmann::json layout_definitions();     // "layout" of a scenario, and all that it refers to
nlohmann::json candidate_definitions();  // "candidate", and all that it refers to
nlohmann::json sweep_schema_value();     // of one scenario's sweep, which refers to "candidate"
const JsonKeys<WhatIf>& what_if_keys();
nlohmann::json goal_schema();
nlohmann::json run_calibration_schema();  // the part of `polyphony calibrate` about runs

}  // namespace polyphony::sim
