#include "shared/scenario_io/scenario_json.h"

#include <algorithm>
#include <filesystem>

#include "shared/form/scenario_form.h"
#include "shared/goal/goal_json.h"
#include "shared/hardware/devices.h"
#include "shared/scenario_io/composite_model_json.h"
#include "shared/scenario_io/scenario_layers.h"
#include "shared/scenario_io/scenario_parts.h"
#include "shared/text/strict_json.h"
#include "shared/validate/validate.h"

namespace polyphony {
namespace {

// Returns `path`, which is relative to the current folder, as a path relative to the folder of
// `file`: the inverse of beside().
std::string from_beside(const std::string& file, const std::string& path) {
  const std::string relative = std::filesystem::path(path)
                                   .lexically_relative(std::filesystem::path(file).parent_path())
                                   .string();
  return relative.empty() || file.find('/') == std::string::npos ? path : relative;
}

// Returns the scenario with the modules of a model that names one folder of weights, or one
// configuration, as a whole.
JsonValue with_whole_model(const JsonValue& root, const OtherFiles& files) {
  constexpr const char* kConfiguration = "config.json";
  if (!root.is_object() || !root.has("model")) return root;
  const JsonValue model = root.at("model");
  if (!model.is_object()) return root;
  if (model.has("hf")) {
    const JsonValue path = model.at("hf");
    path.check(text_form("llava-1.5-7b/config.json"));
    if (model.has("weights"))
      model.refuse_at("hf", "hf and weights must not both be given", "keep one of the two");
    return without_absent_weights(with_composite_shapes(root, files.as_written(files.place(path)),
                                                        {files.text(path), files.place(path)}));
  }
  if (!model.has("weights")) return without_absent_weights(root);
  const JsonValue folder = model.at("weights");
  folder.check(text_form("models/llava-1.5-7b"));
  return without_absent_weights(with_composite_parts(
      root, files.as_written(files.place(folder)),
      {files.text_in(folder, kConfiguration), files.place(folder) + "/" + kConfiguration}));
}

Scenario read_merged(const JsonValue& written, const OtherFiles& files) {
  const JsonValue root = with_whole_model(written, files);
  if (root.is_object() && root.has("model_type") && !root.has("polyphony"))
    root.refuse(
        "is a Hugging Face config.json, not a scenario",
        "ask about it: polyphony ask --model " + root.file() +
            " --gpus 8xH100, or name it in a scenario: \"model\": {\"hf\": \"config.json\"}, with "
            "a cluster and data");
  root.check(object_form(scenario_form()));
  if (root.has("phases"))
    root.refuse_at("phases", "is a value of the file, not of one phase", "change it in the file");
  Scenario scenario;
  scenario.file = root.file();
  root.read("about", scenario.about);
  if (root.has("notes"))
    for (std::size_t i = 0; i < root.at("notes").size(); ++i)
      scenario.notes.push_back(root.at("notes").at(i).text());
  if (root.has("training")) scenario.training = read_training(root.at("training"));
  const ReadCluster read = read_cluster(root.at("cluster"), files, scenario.notes);
  scenario.cluster = read.cluster;
  const bool precision_given = root.has("training") && root.at("training").has("precision");
  if (!precision_given) scenario.training.precision = read.precision;
  scenario.model = read_model(root.at("model"), files, scenario.training.precision, scenario.notes);
  if (root.has("training") && root.at("training").has("learning_rate_factors"))
    scenario.training.rate_factors =
        read_rate_factors(root.at("training").at("learning_rate_factors"), scenario.model);
  if (!precision_given && scenario.training.precision != Training{}.precision)
    scenario.notes.push_back(std::string("training.precision is not given: ") +
                             name(scenario.training.precision) + " is assumed for " +
                             scenario.cluster.device.name);
  scenario.weights = read_weights(root.at("model"), scenario.model, files);
  scenario.layer_times = read_layer_times(root.at("model"), scenario.model);
  scenario.data = read_data(root.at("data"), scenario.model, files);
  if (root.has("goal")) scenario.goal = read_goal(root.at("goal"));
  validate(scenario);
  if (root.has("layout")) {
    scenario.layout = read_layout(root.at("layout"), scenario.model, scenario.cluster);
    scenario.planner_costs =
        read_planner_costs(root.at("layout"), scenario.model, *scenario.layout);
  }
  if (root.has("search")) scenario.search = read_search(root.at("search"), scenario.model);
  if (!scenario.layout && !scenario.search) {  // absent: all that the model and the cluster allow
    scenario.search.emplace();
    scenario.search->modules.resize(scenario.model.modules.size());
  }
  return scenario;
}

// Returns the resolved form of a key below the root, or `written` if a scenario has no such key.
// `profile_from`: the file relative to whose folder a profile's path will be read.
JsonValue spelled_out(Scenario scenario, const std::string& key, const JsonValue& written,
                      const std::string& profile_from) {
  if (std::string& profile = scenario.cluster.profile; is_profile_file(profile))
    profile = from_beside(profile_from, profile);
  JsonValue resolved = JsonValue::parse(resolved_text(scenario), written.file());
  const std::string device =
      R"({"cluster": {"node": {"device": )" + resolved_text(scenario.cluster.device) + "}}}";
  resolved = JsonValue::merge(resolved, JsonValue::parse(device, written.file()));
  return resolved.has(key) ? resolved.at(key) : written.at(key);
}

}  // namespace

std::string beside(const std::string& file, const std::string& path) {
  const auto slash = file.rfind('/');
  if (path.starts_with('/') || slash == std::string::npos) return path;
  return file.substr(0, slash + 1) + path;
}

Scenario read_layers(const ScenarioLayers& layers, const LoadText& load,
                     const std::vector<Override>& overrides) {
  const JsonValue& written = layers.merged();
  OtherFiles files;
  files.place = [&](const JsonValue& path) {
    return beside(layers.place_of(path.pointer()).file, path.text());
  };
  files.text_in = [&](const JsonValue& folder, const std::string& name) {
    return load_from(load, files.place(folder) + "/" + name, layers.place_of(folder.pointer()));
  };
  files.as_written = [&](const std::string& path) { return from_beside(layers.file(), path); };
  files.text = [&](const JsonValue& path) {
    return load_from(load, files.place(path), layers.place_of(path.pointer()));
  };
  try {
    return read_merged(apply(written, overrides,
                             [&](const std::string& key) {
                               return spelled_out(read_merged(written, files), key, written,
                                                  layers.place_of("/cluster/profile").file);
                             }),
                       files);
  } catch (const InputError& error) {
    // Errors of other files (a model's config.json) already name their own.
    if (error.file != layers.file()) throw;
    for (const Override& override : overrides)
      if (is_about(override, error.pointer, written))
        throw InputError(Argument{"set " + override.text}, error.pointer, error.what_is_wrong,
                         error.hint);
    const ScenarioLayers::Place place = layers.place_of(error.pointer);
    const bool says_phase = layers.phase().empty() || place.pointer != error.pointer;
    throw InputError(
        place.file, place.pointer,
        (says_phase ? "" : "in phase \"" + layers.phase() + "\": ") + error.what_is_wrong,
        error.hint);
  }
}

Scenario read_scenario(const std::string& text, const std::string& file, const LoadText& load,
                       const std::vector<Override>& overrides, const std::string& phase) {
  const ScenarioLayers layers(text, file, load);
  const std::vector<std::string> names = layers.phases();
  if (names.empty() && phase.empty()) return read_layers(layers, load, overrides);
  if (names.empty())
    throw InputError(Argument{"phase"}, "", file + " has no phases", "omit the option");
  if (phase.empty())
    throw InputError(file, "/phases",
                     "the scenario has the phases " + joined(names) + ", of which one is required",
                     "choose one: --phase " + names.front());
  const auto found = std::find(names.begin(), names.end(), phase);
  if (found == names.end())
    throw InputError(Argument{"phase"}, "", "\"" + phase + "\" is not a phase of " + file,
                     suggest(phase, names));
  return read_layers(layers.of_phase(static_cast<std::size_t>(found - names.begin())), load,
                     overrides);
}

}  // namespace polyphony
