// The certainty of a hardware profile as JSON: the key "certainty" of shared/hardware/hardware_json.h.
//   {"source": "traces of runs/a", "residual": 0.05, "layout_error": 0.02, "tensor_error": 0.09,
//    "freedom": 5, "footing": "known",
//    "errors": [{"gemm_efficiency": 0.05}, {"op_overhead": 0.3, "stack.host": -0.1}],
//    "fitted": {"gemm_size": {"low": 64, "high": 4096}, "message_bytes": {"low": "4KiB",
//    "high": "2MiB"}, "collective_bytes": {…}, "ranks": {"low": 2, "high": 8}},
//    "jitter": {"steps": 17, "compute": {"step": 0.01, "op": 0.04}, "message": {…},
//    "collective": {…}}}
#pragma once

#include <string>
#include <vector>

#include "shared/hardware/certainty.h"
#include "shared/text/strict_json.h"

namespace polyphony {

// `parameters`: the keys that "errors" may have. The form lives as long as the program.
const ObjectForm& certainty_form(const std::vector<std::string>& parameters);
Certainty read_certainty(const JsonValue& json);
std::string to_json(const Certainty& certainty);

}  // namespace polyphony
