// JSON Schemas (draft 2020-12) of what `--format json` prints, from the tables that write it
// (sim/text/json_keys.h).
#pragma once

#include <string>

#include "sim/step_answers/what_if.h"
#include "sim/text/json_keys.h"

namespace polyphony::sim {

std::string step_schema();        // of `polyphony simulate`
std::string why_schema();         // of `polyphony why`
std::string comparison_schema();  // of `polyphony compare` and `polyphony rehearse`
std::string sweep_schema();       // of `polyphony sweep`
std::string vary_schema();        // of `polyphony sweep --vary`
std::string plan_schema();        // of `polyphony plan`
std::string joint_schema();       // of `polyphony plan --stages`
std::string stream_schema();      // of `polyphony simulate --batches`
std::string segments_schema();    // of `polyphony plan --segments`
std::string trace_schema();       // of `polyphony trace`

// What the schemas are put together from.
std::string schema_document(const std::string& title, const nlohmann::json& root,
                            const nlohmann::json& definitions);
nlohmann::json layout_definitions();     // the scenario's "layout", and what that refers to
nlohmann::json candidate_definitions();  // "candidate", and what that refers to
const JsonKeys<WhatIf>& what_if_keys();
nlohmann::json goal_schema();
nlohmann::json run_calibration_schema();  // what `polyphony calibrate` says of runs

}  // namespace polyphony::sim
