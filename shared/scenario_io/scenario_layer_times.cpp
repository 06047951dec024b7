// Reads measured layer times, and abstract modules, which are described by them alone.
#include <algorithm>

#include "shared/form/scenario_form.h"
#include "shared/hardware/measured_layers_json.h"
#include "shared/scenario_io/scenario_parts.h"

namespace polyphony {
namespace {

void check_entry(const JsonValue& value, const MeasuredLayers& entry, const Model& model,
                 ModuleId id) {
  const Module& module = model.modules[id.value];
  const bool projector = module.kind == ModuleKind::projector;
  if (projector && (entry.part != MeasuredPart::blocks || entry.last >= 0))
    value.refuse("a projector has one layer, so its entry must not name layers", "remove the key");
  if (entry.last > module.layers)
    value.refuse_at(entry.stage ? "stage" : "layers",
                    "the range must be inside [0, " + std::to_string(module.layers) +
                        "], the blocks of " + module.name + ", got an end of " +
                        std::to_string(entry.last),
                    "use a smaller range");
  const auto need = [&](const char* key, const std::string& why) {
    if (!value.has(key))
      value.refuse(std::string("key \"") + key + "\" is missing: " + why,
                   "write the time, or \"0s\" if there is none");
  };
  const bool trains = module.trainable != Trainable::frozen;
  if (trains) need("backward_weight", module.name + " is trained");
  const bool inside = trains && module.layers > 1;  // a block is upstream of the next one
  if (inside || needs_input_grad(model, id))
    need("backward_input", "a module or block upstream of these layers is trained");
}

// Returns the grids for which every block has times; empty if there are times for any grid.
std::vector<MeasuredGrid> measured_grids(const JsonValue& value, const Module& module) {
  const MeasuredModules modules{{module.name, read_measured_layers(value)}};
  std::vector<MeasuredGrid> grids;
  int missing = 0;
  for (const MeasuredLayers& entry : modules.begin()->second) {
    const MeasuredGrid grid{entry.tp, entry.cp};
    int block = 0;
    while (block < module.layers &&
           measured_layer(modules, module, block + 1, grid.tp, grid.cp).has_value())
      ++block;
    if (block == module.layers && grid == MeasuredGrid{}) return {};
    if (block < module.layers)
      missing = std::max(missing, block);
    else if (std::find(grids.begin(), grids.end(), grid) == grids.end())
      grids.push_back(grid);
  }
  if (grids.empty())
    value.refuse("layer_times must have a time for each of the " + std::to_string(module.layers) +
                     " layers, none is given for block " + std::to_string(missing),
                 "add an entry for this block");
  return grids;
}

}  // namespace

bool is_abstract(const JsonValue& value, ModuleKind kind) {
  if (kind == ModuleKind::projector || kind == ModuleKind::diffusion) return false;
  return value.has("layer_times") && !value.has("weights") && !value.has("preset") &&
         !value.has("hf") && !value.has("hidden");
}

Module read_abstract(const JsonValue& value, ModuleKind kind, NumberFormat precision) {
  std::vector<std::string> known = abstract_keys(kind);
  known.insert(known.end(), {"kind", "from", "train", "layers", "layer_times"});
  for (const std::string& key : value.keys())
    if (std::find(known.begin(), known.end(), key) == known.end())
      value.refuse_at(key,
                      key + " must not be given in an abstract module, which has layer_times alone",
                      "remove the key, or write \"hidden\" and the other dimensions");
  Module module;
  module.kind = kind;
  AbstractModule& abstract = module.abstract;
  abstract.is = true;
  if (!value.read("layers", module.layers))
    value.refuse("key \"layers\" is missing", "write the number of layers that the times are for");
  const auto elements = [&](const char* key) {
    Bytes bytes{};
    value.read(key, bytes);
    const std::int64_t each = size_of(precision).value;
    return std::max<std::int64_t>(1, (bytes.value + each - 1) / each);
  };
  const std::int64_t width = elements("output");
  if (width > kMostWidth)
    value.refuse_at("output",
                    "output must be at most " + std::to_string(kMostWidth) +
                        " numbers per token, got " + std::to_string(width),
                    "write the bytes of one token, not of a whole microbatch");
  module.hidden = static_cast<int>(width);
  abstract.parameters = elements("parameters");
  Bytes kept{};
  value.read("kept", kept);
  abstract.kept = kept.value;
  if (kind != ModuleKind::language) {
    int& tokens = kind == ModuleKind::vision ? abstract.tokens : module.audio_tokens;
    tokens = 1;
    value.read("tokens", tokens);
  }
  abstract.grids = measured_grids(value.at("layer_times"), module);
  return module;
}

MeasuredModules read_layer_times(const JsonValue& value, const Model& model) {
  MeasuredModules modules;
  for (std::size_t m = 0; m < model.modules.size(); ++m) {
    const std::string& name = model.modules[m].name;
    if (!value.at(name).has("layer_times")) continue;
    const JsonValue times = value.at(name).at("layer_times");
    const std::vector<MeasuredLayers>& entries = modules[name] = read_measured_layers(times);
    for (std::size_t i = 0; i < entries.size(); ++i)
      check_entry(times.is_list() ? times.at(i) : times, entries[i], model, ModuleId(m));
  }
  return modules;
}

}  // namespace polyphony
