#include "shared/form/module_fields.h"
#include "shared/form/scenario_form.h"
#include "shared/hardware/measured_layers_json.h"
#include "shared/model/presets.h"

namespace polyphony {
namespace {

const ObjectForm& edge_form() {
  static const ObjectForm form{
      "edge",
      "An edge that starts or ends at an inner layer of a module",
      {{"module", text_form("vision"), "name of the module that the edge starts at", true},
       {"from_layer", integer_form(0, kMostLayers),
        "position in the layer stack of that module whose output is read, from 0; the last layer "
        "when absent"},
       {"to_layer", integer_form(0, kMostLayers),
        "position in this module's layer stack where the rows enter; 0, the module's input, when "
        "absent"}},
      {}};
  return form;
}

const ObjectForm& weights_form() {
  static const ObjectForm form{
      "weights",
      "The published model that the module is, with its model type stated, so that no config.json "
      "is "
      "read; a resolved scenario has it in this form",
      {{"folder", text_form("models/SmolLM2-135M"),
        "path of the folder of weights that training begins with; at random when absent"},
       {"config", text_form("models/SmolLM2-135M/config.json"),
        "path of the configuration that an export of the module will have"},
       {"model_type", text_form("llama"), "model_type of the configuration", true}},
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
        "One module of the model: a stack of layers. Its dimensions come from a preset, a Hugging "
        "Face config.json, or the keys below; a key below replaces the value of the preset or "
        "config.json",
        {{"kind", choice_form(enum_names<ModuleKind>()),
          "kind of module; when absent, the module's name, which must then be one of these"},
         {"from",
          any_form({text_form("vision"), object_form(edge_form()), list_form(source, 1, 16)}),
          "the module or modules whose output it reads; each is a name, or an object for an edge "
          "between inner layers"},
         {"preset", choice_form(all_preset_names()),
          "name of a published model whose dimensions are used"},
         {"hf", text_form("llama-3.1-70b/config.json"),
          "path of a Hugging Face config.json whose dimensions are used, relative to this file"},
         {"weights", any_form({text_form("models/SmolLM2-135M"), object_form(weights_form())}),
          "folder of published weights in Hugging Face layout (config.json and safetensors files) "
          "that training begins with, relative to this file; without \"hf\" and \"preset\" the "
          "module's dimensions come from its config.json, too. At random when absent, and by "
          "\"none\" in "
          "a model whose other modules come from one folder"},
         {"train", choice_form(enum_names<Trainable>()),
          "which weights are trained: all (full), none (frozen), or low-rank updates alone (lora); "
          "full when absent"},
         {"merge", any_form({choice_form({"1x1", "2x2", "3x3", "4x4"}), integer_form(1, 64)}),
          "projector: how many neighboring patches (\"2x2\": squares of 2 by 2), or neighboring "
          "tokens of audio (a number), it joins into one token; 1 when absent"},
         {"layer_times", measured_layers_form(),
          "measured times of its layers, which replace those that the hardware profile predicts; "
          "if several entries name the same layer, the first one counts. A vision, audio or "
          "language module without \"preset\", \"hf\" and \"hidden\" is abstract: it is described "
          "by these times, \"layers\" and the keys marked abstract alone, and can only be "
          "simulated"},
         {"tokens", integer_form(1, kMostTokens),
          "abstract encoder: number of tokens of an image or clip; 1 when absent, so that the "
          "times are per image or clip"},
         {"output", memory_form("8KiB"),
          "abstract: bytes per token that a layer passes to the next layer, and the module to the "
          "next module; one element of the training precision when absent"},
         {"kept", memory_form("34KiB"),
          "abstract: bytes per token of the activations that one layer's forward pass saves for "
          "the backward pass, on one rank; 0 when absent"},
         {"parameters", memory_form("436MB"),
          "abstract: bytes of one layer's weights, summed over its tensor-parallel ranks; one "
          "element of the training precision when absent"}},
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
      "model",
      "The modules by name; the key \"from\" of a module makes the edges between them",
      {{"weights", text_form("models/llava-1.5-7b"),
        "folder of a published composite model in Hugging Face layout, relative to this file: its "
        "parts become the modules vision, projector and language, which need not be written, and "
        "training begins with its weights. What is written of one of these modules is added: "
        "{\"train\": \"frozen\"}, or {\"weights\": \"none\"} for a module that begins at random"},
       {"hf", text_form("llava-1.5-7b/config.json"),
        "path of the Hugging Face config.json of a composite model, relative to this file: its "
        "parts become the modules vision, audio, their projectors, and language, with weights at "
        "random"}},
      {object_form(module_form())}};
  return form;
}

std::vector<std::string> module_keys(ModuleKind kind) {
  if (kind == ModuleKind::projector)
    return {"kind", "from", "weights", "train", "merge", "hidden", "layer_times"};
  std::vector<std::string> keys = {"kind",    "from",  "preset",     "hf",
                                   "weights", "train", "layer_times"};
  if (kind == ModuleKind::diffusion)
    std::erase_if(keys, [](const std::string& key) { return key == "hf" || key == "weights"; });
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
