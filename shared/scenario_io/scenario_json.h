// Reads scenario files, and writes them in resolved form (presets and defaults written out).
//
// The keys are listed in shared/form/scenario_form.h. `//` comments are allowed. "extends" names a
// scenario that this one changes (RFC 7396: keys replace keys, null removes a key). "hf" names a
// Hugging Face config.json, and a node's "device" may name a device file. Paths are relative to the
// file that contains them. `load` returns the text of a file or throws InputError; no function here
// opens files itself.
//
// Errors: InputError with the file and JSON pointer of the wrong value. If the value comes from an
// extended file, the error names that file.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "shared/scenario/scenario.h"
#include "shared/scenario_io/overrides_json.h"

namespace polyphony {

using LoadText = std::function<std::string(const std::string& path)>;

// Reads a scenario, derives all values that follow from others, and validates the result.
// `overrides` replace single values of the file. `phase`: which of the file's phases
// (shared/scenario_io/phases.h) is read; empty: the file has none. Throws InputError.
Scenario read_scenario(const std::string& text, const std::string& file, const LoadText& load,
                       const std::vector<Override>& overrides = {}, const std::string& phase = {});

// Returns the scenario as JSON in resolved form: presets are replaced by their figures, defaults
// are written out. read_scenario() of this text returns the same Scenario.
std::string resolved_text(const Scenario& scenario);
nlohmann::ordered_json json_value(const Scenario& scenario);  // the same as a value
// As above, with all relative paths joined to `here`, the current folder. With an absolute `here`
// the text has the same meaning in any folder.
std::string movable_text(Scenario scenario, const std::string& here);
// Returns the value of the key "layout" of a scenario, with the costs for planners that it states,
// as a value and as text.
nlohmann::ordered_json json_value(const Layout& layout, const Model& model,
                                  const PlannerCosts& costs = {});
// Returns the value of a module's key in a layout, without the ranks that it owns: the shape, and
// what differs from the defaults.
nlohmann::ordered_json json_value(const ModuleLayout& grid);
std::string resolved_text(const Layout& layout, const Model& model, const PlannerCosts& costs = {});
// Returns the value of the key "device" of a node, with all figures, even for a shipped device.
std::string resolved_text(const Device& device);

// Returns `path`, which is relative to the folder of `file`, as a path relative to the current
// folder.
std::string beside(const std::string& file, const std::string& path);

}  // namespace polyphony
