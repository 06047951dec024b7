// The parts of read_scenario(), one per top-level key. Each takes a value that has already passed
// check() with its form (shared/form/scenario_form.h), and throws InputError for other errors.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "shared/scenario/scenario.h"
#include "shared/text/strict_json.h"

namespace polyphony {

// Access to other files that the scenario names.
struct OtherFiles {
  std::function<std::string(const JsonValue& path)> place;  // path relative to the current folder
  std::function<std::string(const JsonValue& path)> text;   // text of the file
  // The inverse of place(): how the scenario's own file would write this path.
  std::function<std::string(const std::string& path)> as_written;
  // Text of the file `name` in the folder.
  std::function<std::string(const JsonValue& folder, const std::string& name)> text_in;
};

// Reads the key "model". `precision` converts the sizes of abstract modules from bytes to elements.
// Appends the differences from published models to `notes`.
Model read_model(const JsonValue& value, const OtherFiles& files, NumberFormat precision,
                 std::vector<std::string>& notes);
// Reads the key "weights" of the modules of `model`. Throws InputError if the model that a folder's
// config.json describes computes something that this program does not.
std::vector<ModuleWeights> read_weights(const JsonValue& value, const Model& model,
                                        const OtherFiles& files);
// Returns true if a module is abstract: described by measured times alone.
bool is_abstract(const JsonValue& value, ModuleKind kind);
// Reads an abstract module, except for its name and which weights are trained.
Module read_abstract(const JsonValue& value, ModuleKind kind, NumberFormat precision);
// Reads the measured times of those modules of `model` that have the key "layer_times".
MeasuredModules read_layer_times(const JsonValue& value, const Model& model);
// Fills in the widths and layers that follow from the edges, after modules and edges have been
// read.
void derive_from_neighbors(const JsonValue& value, Model& model);
// A projector's hidden size that is still to be filled in: the width of its output, or that of its
// input.
inline constexpr int kSizeNotGiven = -1, kSizeOfInput = -2;
struct ReadCluster {
  Cluster cluster;
  // The precision of a scenario that states none: bf16 on devices whose matrix units have it (GPUs)
  // and that ship or have a file, fp32 on CPUs and on devices that the scenario describes itself.
  NumberFormat precision = NumberFormat::fp32;
};
// Reads the key "cluster". Appends what is assumed about a device of the user's own to `notes`.
ReadCluster read_cluster(const JsonValue& value, const OtherFiles& files,
                         std::vector<std::string>& notes);
// Reads domains, NICs, leaf switches and degraded ranks, after the nodes and the device's own
// domain have been read.
void read_topology(const JsonValue& value, Cluster& cluster);
Data read_data(const JsonValue& value, const Model& model, const OtherFiles& files);
Training read_training(const JsonValue& value);
// Returns the learning-rate factors of all modules from the object that names some of them.
std::vector<double> read_rate_factors(const JsonValue& value, const Model& model);
Layout read_layout(const JsonValue& value, const Model& model, const Cluster& cluster);
// Reads the costs for planners that a layout's value states, after the layout has been read.
PlannerCosts read_planner_costs(const JsonValue& value, const Model& model, const Layout& layout);
Search read_search(const JsonValue& value, const Model& model);

// Returns the keys of a layout or search that are module names, or "all".
std::vector<std::string> module_words(const JsonValue& value);
// Returns the id of the module named `key`, a key of `value`. Throws InputError with a suggestion
// if there is no such module or if it is a projector.
ModuleId module_named(const JsonValue& value, const std::string& key, const Model& model);

}  // namespace polyphony
