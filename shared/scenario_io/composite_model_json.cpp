#include "shared/scenario_io/composite_model_json.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "shared/model/hf_config.h"

namespace polyphony {

using Json = nlohmann::json;

namespace {

JsonValue parse(const WholeConfiguration& configuration) {
  return hf_root(configuration.text, configuration.file);
}

bool has_part(const JsonValue& config, const char* part) {
  return config.has(part) && config.at(part).is_object();
}

// Whether the projector of a model type is one matrix without a hidden layer.
bool is_linear_projector(const std::string& type) {
  return type == "qwen2_audio" || type == "idefics3" || type == "smolvlm" ||
         type.starts_with("gemma3");
}

// Adds a projector for each block whose output also enters the language module (DeepStack, as in
// Qwen3-VL and Qwen3-Omni): the rows of the first are added after the first block, and so on.
void add_deep_rows(const JsonValue& config, const Json& projector, Json& modules, Json& sources) {
  constexpr const char* kBlocks = "deepstack_visual_indexes";
  constexpr int kMostDeep = 16, kMostBlocks = 1 << 10;
  const JsonValue vision = config.at("vision_config");
  if (!vision.has(kBlocks)) return;
  const JsonValue blocks = vision.at(kBlocks);
  blocks.check(list_form(integer_form(0, kMostBlocks), 0, kMostDeep));
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const std::string name = "deep_projector_" + std::to_string(i + 1);
    // Layer 0 of either stack comes before the first block.
    modules[name] = projector;
    modules[name]["from"] = {{"module", "vision"}, {"from_layer", blocks.at(i).integer() + 1}};
    sources.push_back({{"module", name}, {"to_layer", i + 2}});
  }
}

// Returns the scenario with these modules under what it says of them, and without the key of its
// model that named them all.
JsonValue with_modules(const JsonValue& scenario, const Json& modules, const char* key) {
  const auto document = [&](const Json& model) {
    return JsonValue::parse(
        Json{{"model", model}}.dump(-1, ' ', false, Json::error_handler_t::replace),
        scenario.file());
  };
  return JsonValue::merge(JsonValue::merge(document(modules), scenario),
                          document({{key, nullptr}}));
}

}  // namespace

JsonValue with_composite_parts(const JsonValue& scenario, const std::string& folder,
                               const WholeConfiguration& configuration) {
  const JsonValue config = parse(configuration);
  if (has_part(config, "audio_config"))
    config.refuse_at("audio_config", "models with an audio encoder are not taken apart yet",
                     "name the folder by \"weights\" of each module instead");
  Json modules = {{"language", {{"weights", folder}}}};
  if (has_part(config, "vision_config")) {
    modules["vision"] = {{"weights", folder}};
    modules["projector"] = {{"from", "vision"}, {"weights", folder}};
    modules["language"]["from"] = "projector";
  }
  return with_modules(scenario, modules, "weights");
}

JsonValue with_composite_shapes(const JsonValue& scenario, const std::string& path,
                                const WholeConfiguration& configuration) {
  const JsonValue config = parse(configuration);
  const std::string type =
      hf_model_type(configuration.text, configuration.file, ModuleKind::projector);
  Json modules = {{"language", {{"hf", path}}}};
  Json sources = Json::array();
  const auto add = [&](const char* encoder, const char* projector, const char* part) {
    if (!has_part(config, part)) return;
    modules[encoder] = {{"hf", path}};
    modules[projector] = {{"kind", "projector"},
                          {"from", encoder},
                          {"weights", {{"config", path}, {"model_type", type}}}};
    if (is_linear_projector(type)) modules[projector]["hidden"] = 0;
    sources.push_back(projector);
  };
  add("vision", "projector", "vision_config");
  if (has_part(config, "vision_config") && has_deep_rows(type))
    add_deep_rows(config, modules["projector"], modules, sources);
  add("audio", "audio_projector", "audio_config");
  if (!sources.empty()) modules["language"]["from"] = sources;
  return with_modules(scenario, modules, "hf");
}

JsonValue without_absent_weights(const JsonValue& scenario) {
  Json absent = Json::object();
  const JsonValue model = scenario.at("model");
  for (const std::string& module : model.keys())
    if (const JsonValue own = model.at(module); own.is_object() && own.has("weights") &&
                                                own.at("weights").is_text() &&
                                                own.at("weights").text() == kNoWeights)
      absent[module] = {{"weights", nullptr}};
  if (absent.empty()) return scenario;
  return JsonValue::merge(scenario,
                          JsonValue::parse(Json{{"model", absent}}.dump(), scenario.file()));
}

}  // namespace polyphony
