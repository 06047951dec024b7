#include "shared/model/presets.h"
#include "shared/scenario/module_fields.h"
#include "shared/scenario/scenario_form.h"

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
          "token"}},
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
  if (kind == ModuleKind::projector) return {"kind", "from", "train", "merge", "hidden"};
  std::vector<std::string> keys = {"kind", "from", "preset", "hf", "train"};
  if (kind == ModuleKind::diffusion) std::erase(keys, "hf");
  for (const ModuleField& field : module_fields())
    if (field.is_of(kind)) keys.push_back(field.key);
  return keys;
}

}  // namespace polyphony
