#include "shared/scenario_io/scenario_layers.h"

#include <algorithm>

#include "shared/form/scenario_form.h"

namespace polyphony {
namespace {

constexpr std::size_t kMostExtends = 8;
constexpr std::size_t kLongestName = 64;  // of a phase

bool is_plain_name(const std::string& name) {
  constexpr const char* kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
  return !name.empty() && name.size() <= kLongestName && name.front() != '.' &&
         name.front() != '-' && name.find_first_not_of(kPlain) == std::string::npos;
}

}  // namespace

std::string load_from(const LoadText& load, const std::string& path,
                      const ScenarioLayers::Place& from) {
  try {
    return load(path);
  } catch (const InputError& error) {
    const std::string what =
        error.file.empty() ? error.what_is_wrong : error.file + ": " + error.what_is_wrong;
    throw InputError(from.file, from.pointer, what, error.hint);
  }
}

ScenarioLayers::ScenarioLayers(const std::string& text, const std::string& file,
                               const LoadText& load)
    : layers_{{JsonValue::parse(text, file), ""}}, merged_(layers_.front().document) {
  while (layers_.back().document.is_object() && layers_.back().document.has("extends")) {
    const JsonValue extends = layers_.back().document.at("extends");
    extends.check(text_form("base.json"));
    const std::string path = beside(extends.file(), extends.text());
    if (layers_.size() == kMostExtends)
      extends.refuse(
          "the chain of \"extends\" must have at most " + std::to_string(kMostExtends) + " files",
          "check that no file extends itself through others");
    layers_.push_back(
        {JsonValue::parse(load_from(load, path, {extends.file(), extends.pointer()}), path), ""});
  }
  merged_ = layers_.back().document;
  for (std::size_t i = layers_.size() - 1; i-- > 0;)
    merged_ = JsonValue::merge(merged_, layers_[i].document);
}

std::vector<std::string> ScenarioLayers::phases() const {
  if (!merged_.is_object() || !merged_.has("phases")) return {};
  const auto writer = std::find_if(layers_.begin(), layers_.end(), [](const Layer& layer) {
    return layer.document.points_to_something("/phases");
  });
  const JsonValue list = writer->document.at("phases");
  list.check(phases_form());
  std::vector<std::string> names;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string name = list.at(i).at("name").text();
    if (!is_plain_name(name))
      list.at(i).refuse_at("name", "\"" + name + "\" is no plain file name",
                           "use letters, digits, \"-\", \"_\" and \".\", such as \"align\"");
    if (std::find(names.begin(), names.end(), name) != names.end())
      list.at(i).refuse_at("name", "\"" + name + "\" is the name of an earlier phase",
                           "give each phase a name of its own");
    names.push_back(name);
  }
  return names;
}

ScenarioLayers ScenarioLayers::of_phase(std::size_t position) const {
  const auto writer = std::find_if(layers_.begin(), layers_.end(), [](const Layer& layer) {
    return layer.document.points_to_something("/phases");
  });
  const JsonValue phase = writer->document.at("phases").at(position);
  ScenarioLayers result = *this;
  result.phase_ = phase.at("name").text();
  result.phase_place_ = {phase.file(), phase.pointer()};
  result.merged_ = JsonValue::merge(merged_, JsonValue::parse(R"({"phases": null})", file()));
  if (!phase.has("change")) return result;
  const JsonValue change = phase.at("change");
  for (const char* key : {"phases", "extends"})
    if (change.has(key))
      change.refuse_at(key,
                       "a phase changes values of its scenario, and has no \"" + std::string(key) +
                           "\" of its own",
                       "write it next to \"phases\"");
  result.layers_.insert(
      result.layers_.begin(),
      {JsonValue::parse(change.dump(), writer->document.file()), change.pointer()});
  result.merged_ = JsonValue::merge(result.merged_, JsonValue::parse(change.dump(), file()));
  return result;
}

ScenarioLayers::Place ScenarioLayers::place_of(const std::string& pointer) const {
  for (const Layer& layer : layers_)
    if (layer.document.points_to_something(pointer))
      return {layer.document.file(), layer.within + pointer};
  return {file(), pointer};
}

}  // namespace polyphony
