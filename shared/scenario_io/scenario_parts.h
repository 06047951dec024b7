// The pieces of read_scenario(), one per top-level key. Each takes a value that the form
// (shared/form/scenario_form.h) has already accepted.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "shared/scenario/scenario.h"
#include "shared/text/strict_json.h"

namespace polyphony {

// How a part reaches other files: the path as the reader's program sees it, and a file's text.
struct OtherFiles {
  std::function<std::string(const JsonValue& path)> place;
  std::function<std::string(const JsonValue& path)> text;
};

// `precision`: of what abstract modules hand on, in bytes.
Model read_model(const JsonValue& value, const OtherFiles& files, NumberFormat precision,
                 std::vector<std::string>& notes);
// Whether a module is given by measured times alone; and such a module, without its name and what
// trains.
bool is_abstract(const JsonValue& value, ModuleKind kind);
Module read_abstract(const JsonValue& value, ModuleKind kind, NumberFormat precision);
// Measured times of the modules that have them, in a model that is read.
MeasuredModules read_layer_times(const JsonValue& value, const Model& model);
// Of a model whose modules and edges are read: widths and layers that follow from the edges.
void take_from_neighbours(const JsonValue& value, Model& model);
inline constexpr int kSizeNotSaid = -1;  // a projector's hidden size until then
Cluster read_cluster(const JsonValue& value, const OtherFiles& files);
// The precision of a scenario that gives none: bf16 on shipped devices whose matrix units have it
// (GPUs), fp32 on CPUs and on devices that the scenario describes itself.
NumberFormat default_precision(const Device& device);
// Domains, NICs, leaf switches and degraded ranks, of a cluster whose nodes are read.
void read_topology(const JsonValue& value, Cluster& cluster);
Data read_data(const JsonValue& value, const Model& model, const OtherFiles& files);
Training read_training(const JsonValue& value);
Layout read_layout(const JsonValue& value, const Model& model, const Cluster& cluster);
Search read_search(const JsonValue& value, const Model& model);

// The module called `key`, which stands in `value`; refused with a suggestion when there is none,
// or when it is a projector.
ModuleId module_named(const JsonValue& value, const std::string& key, const Model& model);

}  // namespace polyphony
