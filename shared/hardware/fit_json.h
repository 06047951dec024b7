// A fit as JSON: a file of shared/hardware/fits, or the key "fit" of a device file. Its keys are
// those of a hardware profile (shared/hardware/hardware_json.h):
//   {"device": "H100", "rows": "37 published rows of H100", "gemm_efficiency": 0.673, …,
//    "errors": {"gemm_efficiency": 0.029, "attention_efficiency": 0.2},
//    "fitted": {"gemm_size": {"low": 4260, "high": 23823}}, "source": "…"}
#pragma once

#include <string>
#include <vector>

#include "shared/hardware/fits.h"
#include "shared/text/strict_json.h"

namespace polyphony {

// The form lives as long as the program.
const ObjectForm& fit_form();
// Reads a fit from a value that has been checked against fit_form().
Fit read_fit(const JsonValue& json, const std::string& name);

// Returns the form of a key "source": sentences that say where figures come from, either a text or
// texts by group of figures. `groups` lives as long as the form.
Form source_form(const ObjectForm& groups);
ObjectForm source_groups(const std::string& name, const std::vector<std::string>& groups);

}  // namespace polyphony
