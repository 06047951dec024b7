#include "shared/checkpoint/checkpoint_manifest_json.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "shared/error.h"
#include "shared/fnv.h"
#include "shared/model/limits.h"
#include "shared/text/strict_json.h"

namespace polyphony {
namespace {

constexpr const char* kManifestVersion = "polyphony_checkpoint";
constexpr const char* kChecksum = "checksum";
constexpr const char* kRestore = "restore the manifest, or use another checkpoint";

std::string digits_without_checksum(nlohmann::json manifest) {
  manifest.erase(kChecksum);
  Fnv checksum;
  checksum.add(manifest.dump());
  return checksum.digits();
}

// Checked before anything else in the manifest is used.
void check_whole(const JsonValue& root, const std::string& text) {
  std::int64_t version = 0;
  root.read(kManifestVersion, version);
  if ((version == 2) != !root.has(kChecksum))
    root.refuse("version " + std::to_string(version) + (version == 2 ? " has" : " needs") +
                    (version == 2 ? " no checksum" : " a checksum"),
                kRestore);
  if (version == 2) return;
  const nlohmann::json value = nlohmann::json::parse(text, nullptr, true, true);
  if (digits_without_checksum(value) != root.at(kChecksum).text())
    root.refuse_at(kChecksum, "does not match: the manifest is damaged", kRestore);
}

std::uint64_t parse_checksum(const JsonValue& value) {
  const std::string text = value.text();
  if (text.size() != 16 || text.find_first_not_of("0123456789abcdef") != std::string::npos)
    value.refuse("\"" + text + "\" is not a checksum", kRestore);
  return std::stoull(text, nullptr, 16);
}

const ObjectForm& manifest_form() {
  constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();
  constexpr double kMost = std::numeric_limits<double>::max();
  static const ObjectForm parameter{
      "parameter",
      "a parameter of the model",
      {{"name", text_form("language.head.output.weight"), "name", true},
       {"shape", list_form(integer_form(0, kAny), 0, 8), "rows, columns", true},
       {"trainable", boolean_form(), "has optimizer state", true}},
      {}};
  static const ObjectForm slices{"slices", "by parameter", {}, {text_form("rows 1/2")}};
  static const ObjectForm file{
      "file",
      "of one rank",
      {{"name", text_form("rank-0.safetensors"), "name", true},
       {"size", integer_form(0, kAny), "size in bytes", true},
       {"checksum", text_form("cbf29ce484222325"), "checksum of the whole file", true},
       {"slices", object_form(slices), "parts of parameters that it contains", true}},
      {}};
  static const ObjectForm bad_steps{
      "bad_steps",
      "what the run knows of bad steps",
      {{"skipped", integer_form(0, kAny), "steps in a row without an update", true},
       {"rewinds", integer_form(0, kAny), "since the run began", true},
       {"passed_over", integer_form(0, kAny), "batches of the data passed over", true},
       {"seen", list_form(list_form(number_form(-kMost, kMost), 3, 3)),
        "step, loss and gradient norm of the newest steps", true}},
      {}};
  static const ObjectForm manifest{
      "manifest",
      "of a checkpoint",
      {{kManifestVersion, integer_form(2, 3), "version", true},
       {kChecksum, text_form("cbf29ce484222325"), "checksum of the manifest without this key"},
       {"step", integer_form(0, kAny), "steps trained", true},
       {"optimizer_steps", integer_form(0, kAny), "updates made", true},
       {"world_size", integer_form(1), "number of ranks that wrote it", true},
       {"format", text_form("F32"), "number format", true},
       {"blocks", list_form(list_form(integer_form(0, kMostLayers), 0, kMostLayers), 0, 64),
        "blocks per stage, by module, of the run that wrote it"},
       {"run", text_form("{…}"), "record of the scenario"},
       {"bad_steps", object_form(bad_steps), "what the run knows of bad steps"},
       {"parameters", list_form(object_form(parameter)), "parameters of the model", true},
       {"files", list_form(object_form(file)), "files of the ranks", true}},
      {}};
  return manifest;
}

BadStepState read_bad_steps(const JsonValue& value) {
  constexpr double kMostExact = 9007199254740992;  // 2^53
  BadStepState known;
  value.read("skipped", known.skipped);
  value.read("rewinds", known.rewinds);
  value.read("passed_over", known.passed_over);
  const JsonValue seen = value.at("seen");
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const JsonValue one = seen.at(i);
    const double step = std::clamp(one.at(0).number(), 0.0, kMostExact);
    known.seen.push_back({static_cast<std::int64_t>(step), one.at(1).number(), one.at(2).number()});
  }
  return known;
}

}  // namespace

std::vector<ModelParameter> model_parameters(const Model& model) {
  std::vector<ModelParameter> list;
  for (const Module& module : model.modules)
    for (const Parameter& parameter : parameters(module))
      list.push_back({parameter.name, parameter.shape, parameter.trained});
  return list;
}

std::string to_json(const Manifest& manifest) {
  using nlohmann::json;
  json parameters = json::array(), files = json::array();
  for (const ModelParameter& p : manifest.parameters)
    parameters.push_back({{"name", p.name}, {"shape", p.shape}, {"trainable", p.trainable}});
  for (const ManifestFile& file : manifest.files)
    files.push_back({{"name", file.name},
                     {"size", file.digest.size.value},
                     {"checksum", Fnv(file.digest.checksum).digits()},
                     {"slices", json(file.slices)}});
  json whole{{kManifestVersion, 3},
             {"step", manifest.step},
             {"optimizer_steps", manifest.optimizer_steps},
             {"world_size", manifest.world_size},
             {"format", manifest.format},
             {"blocks", manifest.blocks},
             {"parameters", std::move(parameters)},
             {"files", std::move(files)}};
  if (!manifest.run.empty()) whole["run"] = manifest.run;
  if (const BadStepState& known = manifest.bad_steps; known != BadStepState{}) {
    json seen = json::array();
    for (const BadStepState::Seen& one : known.seen)
      seen.push_back({one.step, one.loss, one.gradient_norm});
    whole["bad_steps"] = {{"skipped", known.skipped},
                          {"rewinds", known.rewinds},
                          {"passed_over", known.passed_over},
                          {"seen", std::move(seen)}};
  }
  whole[kChecksum] = digits_without_checksum(whole);
  return whole.dump(1);
}

Manifest parse_manifest(const std::string& text, const std::string& file) {
  const JsonValue root = JsonValue::parse(text, file);
  root.check(object_form(manifest_form()));
  check_whole(root, text);
  Manifest manifest;
  root.read("step", manifest.step);
  root.read("optimizer_steps", manifest.optimizer_steps);
  root.read("world_size", manifest.world_size);
  root.read("format", manifest.format);
  root.read("run", manifest.run);
  if (root.has("bad_steps")) manifest.bad_steps = read_bad_steps(root.at("bad_steps"));
  if (root.has("blocks"))
    for (std::size_t m = 0; m < root.at("blocks").size(); ++m) {
      const JsonValue module = root.at("blocks").at(m);
      manifest.blocks.emplace_back();
      for (std::size_t i = 0; i < module.size(); ++i)
        manifest.blocks.back().push_back(static_cast<int>(module.at(i).integer()));
    }
  const JsonValue parameters = root.at("parameters"), files = root.at("files");
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const JsonValue value = parameters.at(i), shape = value.at("shape");
    ModelParameter parameter{value.at("name").text(), {}, value.at("trainable").boolean()};
    for (std::size_t d = 0; d < shape.size(); ++d) parameter.shape.push_back(shape.at(d).integer());
    manifest.parameters.push_back(std::move(parameter));
  }
  for (std::size_t i = 0; i < files.size(); ++i) {
    const JsonValue value = files.at(i), slices = value.at("slices");
    ManifestFile entry{value.at("name").text(),
                       {Bytes(value.at("size").integer()), parse_checksum(value.at("checksum"))},
                       {}};
    if (entry.name.find('/') != std::string::npos)
      value.refuse_at("name", "must be a file name without a folder", "restore the manifest");
    for (const std::string& name : slices.keys()) entry.slices[name] = slices.at(name).text();
    manifest.files.push_back(std::move(entry));
  }
  return manifest;
}

}  // namespace polyphony
