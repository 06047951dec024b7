#include "shared/form/module_fields.h"
#include "shared/form/scenario_form.h"
#include "shared/hardware/measured_layers_json.h"
#include "shared/model/presets.h"

namespace polyphony {
namespace {

const ObjectForm& edge_form() {
  static const ObjectForm form{"edge",
                               "An edge between inner layers",
                               {{"module", text_form("vision"), "the module it comes from", true},
                                {"from_layer", integer_form(0, kMostLayers),
                                 "position in that module's layer stack; its last when absent"},
                                {"to_layer", integer_form(0, kMostLayers),
                                 "position in this module's layer stack; 0 is its input"}},
                               {}};
  return form;
}

Form memory_form(std::string example) {
  return quantity_form(UnitKind::bytes, std::move(example), "0B", "1TB");
}

std::vector<std::string> all_preset_names() {
  std::vector<std::string> names;
  for (const ModelPreset& preset : model_presets()) names.push_back(preset.name);
  return names;
}

const ObjectForm& module_form() {
  const Form source = any_form({text_form("vision"), object_form(edge_form())});
  static const ObjectForm form = [&] {
    ObjectForm made{
        "module",
        "A part of the model: a stack of layers. Dimensions come from a preset, a Hugging Face "
        "configuration, or the keys here",
        {{"kind", choice_form(enum_names<ModuleKind>()),
          "what it is; the module's own name when absent"},
         {"from",
          any_form({text_form("vision"), object_form(edge_form()), list_form(source, 1, 16)}),
          "the module or modules whose output it reads"},
         {"preset", choice_form(all_preset_names()), "a published model by name"},
         {"hf", text_form("llama-3.1-70b/config.json"), "path of a Hugging Face config.json"},
         {"train", choice_form(enum_names<Trainable>()),
          "which weights are trained; full when absent"},
         {"merge", any_form({choice_form({"1x1", "2x2", "3x3", "4x4"}), integer_form(1, 64)}),
          "neighbouring patches, or neighbouring frames of audio, that a projector joins into one "
          "token"},
         {"layer_times", measured_layers_form(),
          "measured times of its layers, in place of what a profile says; of several entries that "
          "name a layer the first holds; a vision, audio or language module without preset, "
          "configuration or \"hidden\" is abstract: known by these, \"layers\" and the four keys "
          "below, for simulation only"},
         {"tokens", integer_form(1, kMostTokens),
          "abstract: of an image or clip; 1 when absent, so that times are by image or clip"},
         {"output", memory_form("8KiB"),
          "abstract: bytes that a token carries from layer to layer and to the next module; next "
          "to nothing when absent"},
         {"kept", memory_form("34KiB"),
          "abstract: bytes a token that a layer's forward keeps for its backward, on one rank; 0 "
          "when absent"},
         {"parameters", memory_form("436MB"),
          "abstract: bytes of a layer's weights, on its tensor-parallel ranks together; next "
          "to nothing when absent"}},
        {}};
    for (const ModuleField& field : module_fields())
      made.fields.push_back({field.key, field.form(), field.about});
    return made;
  }();
  return form;
}

}  // namespace

const ObjectForm& model_form() {
  static const ObjectForm form{
      "model", "Modules by name; \"from\" makes the edges", {}, {object_form(module_form())}};
  return form;
}

std::vector<std::string> module_keys(ModuleKind kind) {
  if (kind == ModuleKind::projector)
    return {"kind", "from", "train", "merge", "hidden", "layer_times"};
  std::vector<std::string> keys = {"kind", "from", "preset", "hf", "train", "layer_times"};
  if (kind == ModuleKind::diffusion) std::erase(keys, "hf");
  for (const ModuleField& field : module_fields())
    if (field.is_of(kind)) keys.push_back(field.key);
  for (const std::string& key : abstract_keys(kind)) keys.push_back(key);
  return keys;
}

std::vector<std::string> abstract_keys(ModuleKind kind) {
  if (kind == ModuleKind::language) return {"output", "kept", "parameters"};
  if (kind == ModuleKind::diffusion) return {};
  return {"tokens", "output", "kept", "parameters"};
}

}  // namespace polyphony
