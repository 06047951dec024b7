#include "shared/scenario_io/composite_model_json.h"

#include <nlohmann/json.hpp>

namespace polyphony {

using Json = nlohmann::json;

JsonValue with_composite_parts(const JsonValue& scenario, const std::string& folder,
                               const std::string& configuration, const std::string& file) {
  const JsonValue config = JsonValue::parse(configuration, file);
  if (!config.is_object())
    config.refuse("is not a JSON object", "give the folder of a Hugging Face model");
  const auto has = [&](const char* part) {
    return config.has(part) && config.at(part).is_object();
  };
  if (has("audio_config"))
    config.refuse_at("audio_config", "models with an audio encoder are not taken apart yet",
                     "name the folder by \"weights\" of each module instead");
  Json modules = {{"language", {{"weights", folder}}}};
  if (has("vision_config")) {
    modules["vision"] = {{"weights", folder}};
    modules["projector"] = {{"from", "vision"}, {"weights", folder}};
    modules["language"]["from"] = "projector";
  }
  const auto document = [&](const Json& model) {
    return JsonValue::parse(
        Json{{"model", model}}.dump(-1, ' ', false, Json::error_handler_t::replace),
        scenario.file());
  };
  return JsonValue::merge(JsonValue::merge(document(modules), scenario),
                          document({{"weights", nullptr}}));
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
