#include "shared/export/llava_json.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "shared/error.h"
#include "shared/export/export_config_json.h"
#include "shared/model/data_modules.h"
#include "shared/tokenizer/tokenizer.h"

namespace polyphony {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson parsed(const std::string& text) {
  return OrderedJson::parse(text, nullptr, true, /*ignore_comments=*/true);
}

}  // namespace

LlavaModules find_llava(const Scenario& scenario, const std::vector<ModuleWeights>& sources) {
  const std::vector<Module>& modules = scenario.model.modules;
  LlavaModules found;
  const auto refuse = [&](const std::string& name, const std::string& what,
                          const std::string& hint) {
    throw InputError(scenario.file, "/model" + (name.empty() ? "" : "/" + name), what, hint);
  };
  const auto only = [&](ModuleKind kind) {
    const auto of_kind = [kind](const Module& module) { return module.kind == kind; };
    if (std::count_if(modules.begin(), modules.end(), of_kind) != 1)
      refuse("", std::string("must have one ") + name(kind) + " module to be a LLaVA",
             "export without --llava: each module has a folder");
    return static_cast<std::size_t>(std::find_if(modules.begin(), modules.end(), of_kind) -
                                    modules.begin());
  };
  found.vision = only(ModuleKind::vision);
  found.projector = only(ModuleKind::projector);
  found.language = only(ModuleKind::language);
  if (modules.size() != 3)
    refuse("", "must have three modules to be a LLaVA, got " + std::to_string(modules.size()),
           "export without --llava: each module has a folder");
  const Module &vision = modules[found.vision], &projector = modules[found.projector],
               &language = modules[found.language];
  if (vision.final_norm)
    refuse(vision.name, "has a norm after its last block, which a LLaVA does not read",
           "train with \"final_norm\": false, or with a vision module of the type clip");
  if (projector.merge != 1 || projector.projector_hidden != language.hidden)
    refuse(projector.name,
           "must merge no patches and have a hidden layer of the language module's width, " +
               std::to_string(language.hidden) + ", to be that of a LLaVA",
           "export without --llava: each module has a folder");
  for (const std::size_t m : {found.vision, found.language})
    if (sources[m].config.empty())
      refuse(modules[m].name, "is of no published model, so that it has no config.json",
             "name one by \"weights\" or \"hf\"");
  return found;
}

LlavaRoots llava_roots(ModuleKind kind) {
  if (kind == ModuleKind::vision) return {"vision_tower.", ""};
  if (kind == ModuleKind::projector) return {"multi_modal_projector.", ""};
  return {"language_model.model.", "language_model."};
}

std::int32_t image_token_id(const ModuleWeights& language, const std::string& token) {
  const std::string file =
      (std::filesystem::path(language.config).parent_path() / "tokenizer.json").string();
  if (!std::filesystem::exists(file))
    throw InputError(file, "", "is missing: it has the id of the token that stands for images",
                     "put the model's tokenizer.json there");
  const std::vector<std::int32_t> ids = Tokenizer::load(file).encode(token);
  if (ids.size() != 1)
    throw InputError("--image-token", "", "\"" + token + "\" is no token of " + file,
                     "name one that texts do not contain, such as a reserved special token");
  return ids.front();
}

std::string llava_config(const Module& vision, const std::string& vision_config,
                         const std::string& language_config, const std::string& format,
                         std::int32_t image_token) {
  OrderedJson tower = parsed(vision_config);
  const OrderedJson text = parsed(language_config);
  // A part may omit the number of its blocks. Those after the module's last one stay unused.
  if (!tower.contains("num_hidden_layers")) tower["num_hidden_layers"] = vision.layers;
  const OrderedJson config = {
      {"architectures", {"LlavaForConditionalGeneration"}},
      {"model_type", "llava"},
      {"dtype", torch_name(format)},
      {"image_token_index", image_token},
      {"image_seq_length", patches_of(vision)},
      {"projector_hidden_act", "gelu"},
      {"multimodal_projector_bias", true},
      {"vision_feature_layer", vision.layers - tower.at("num_hidden_layers").get<int>() - 1},
      {"vision_feature_select_strategy", vision.class_token ? "default" : "full"},
      {"tie_word_embeddings", text.value("tie_word_embeddings", false)},
      {"vision_config", tower},
      {"text_config", text}};
  return config.dump(2) + "\n";
}

std::string llava_processor(const Module& vision, const std::string& image_token) {
  const OrderedJson config = {
      {"processor_class", "LlavaProcessor"},
      {"image_token", image_token},
      {"patch_size", vision.patch},
      {"num_additional_image_tokens", vision.class_token ? 1 : 0},
      {"vision_feature_select_strategy", vision.class_token ? "default" : "full"}};
  return config.dump(2) + "\n";
}

std::string plain_preprocessor(const Module& vision) {
  constexpr int kBicubic = 3;  // PIL's number
  const OrderedJson config = {
      {"image_processor_type", "SiglipImageProcessor"},
      {"do_resize", true},
      {"size", {{"height", vision.image_size}, {"width", vision.image_size}}},
      {"resample", kBicubic},
      {"do_rescale", true},
      {"rescale_factor", 1.0 / 255},
      {"do_normalize", true},
      {"image_mean", {0.5, 0.5, 0.5}},
      {"image_std", {0.5, 0.5, 0.5}}};
  return config.dump(2) + "\n";
}

}  // namespace polyphony
