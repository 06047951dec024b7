// The texts that a scenario is merged from, the first on top: the change of a phase, the file, and
// the files that it extends. Keeps where each value is written, for errors and relative paths.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "shared/scenario_io/scenario_json.h"
#include "shared/text/strict_json.h"

namespace polyphony {

class ScenarioLayers {
 public:
  // Reads a file and those that it extends. Throws InputError if one of them is missing or not
  // JSON, or if the chain is too long.
  ScenarioLayers(const std::string& text, const std::string& file, const LoadText& load);

  // Returns the names of the phases, in order; empty if the file has none. Throws InputError if the
  // key has another form, a name is not a plain file name, or two phases have the same.
  std::vector<std::string> phases() const;
  // Returns these texts with the change of a phase on top, and without the key "phases".
  ScenarioLayers of_phase(std::size_t position) const;

  // Returns the merged document. Errors in it name the file that was asked for.
  const JsonValue& merged() const { return merged_; }
  const std::string& file() const { return merged_.file(); }

  struct Place {
    std::string file, pointer;
  };
  const std::string& phase() const { return phase_; }        // its name; empty: no phase
  const Place& phase_place() const { return phase_place_; }  // where it is written
  // Returns where the value at a pointer of the merged document is written: in the topmost text
  // that has it, or else in the file that was asked for.
  Place place_of(const std::string& pointer) const;

 private:
  struct Layer {
    JsonValue document;
    std::string within;  // pointer of the document in its file: "/phases/1/change"
  };

  std::vector<Layer> layers_;
  JsonValue merged_;
  std::string phase_;
  Place phase_place_;
};

// Returns the text of the file `path`, which is named at `from`. An error names both.
std::string load_from(const LoadText& load, const std::string& path,
                      const ScenarioLayers::Place& from);

// Reads the merged document with the overrides applied. Throws InputError that names the place of
// the wrong value, and the phase.
Scenario read_layers(const ScenarioLayers& layers, const LoadText& load,
                     const std::vector<Override>& overrides);

}  // namespace polyphony
