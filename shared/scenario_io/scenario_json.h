// Scenario files: reading, and printing what was read with everything derived spelled out.
//   The form is in shared/form/scenario_form.h. `//` comments are allowed. "extends" names a
//   scenario that this one changes (RFC 7396: keys replace keys, null removes). "hf" names a
//   Hugging Face config.json. Paths are relative to the file that names them. `load` returns the
//   text of a file, or throws InputError; nothing here opens files itself.
// Errors: InputError with the file and JSON pointer of the offending value, in the extended file
// when it stands there.
#pragma once

#include <functional>
#include <string>

#include "shared/scenario/scenario.h"
#include "shared/scenario_io/overrides_json.h"

namespace polyphony {

using LoadText = std::function<std::string(const std::string& path)>;

// Reads, derives and validates; `overrides` replace single values of what is written.
Scenario read_scenario(const std::string& text, const std::string& file, const LoadText& load,
                       const std::vector<Override>& overrides = {});

// The resolved scenario as JSON: no presets, no defaults left out. Reads back to the same Scenario.
std::string resolved_text(const Scenario& scenario);
// The same, its paths as seen from `here`, the current folder: it means the same in any folder.
std::string movable_text(Scenario scenario, const std::string& here);
// A layout of it, as the scenario's "layout" would say it.
std::string resolved_text(const Layout& layout, const Model& model);
// Its device with every figure, also where it ships.
std::string resolved_text(const Device& device);

// `path` as named in `file`, relative to where the program stands.
std::string beside(const std::string& file, const std::string& path);

}  // namespace polyphony
