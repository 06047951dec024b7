#include "sim/answer_json/answer_schema.h"
#include "sim/answer_json/answers_json.h"
#include "sim/text/json_keys.h"

namespace polyphony::sim {
namespace {

using nlohmann::json;
using Maybe = std::optional<json>;

const JsonKeys<EmitAnswer>& emit_keys() {
  using Of = EmitAnswer;
  const json texts = list_of(a("string"));
  static const JsonKeys<Of> keys{
      {"framework", a("string"), "the framework that the files are for",
       [](const Of& of) { return json(name(of.emitted.target.target)); }},
      {"version", or_null(a("string")), "of the framework; null: the newest that is known",
       [](const Of& of) {
         return of.emitted.target.version ? json(version_text(*of.emitted.target.version)) : json();
       }},
      {"arguments", a("object"),
       "the framework's own names and values; sections are joined by dots",
       [](const Of& of) { return json(of.emitted.arguments); }},
      {"files", texts, "paths of the files that were written",
       [](const Of& of) {
         json files = json::array();
         for (const NamedText& file : of.emitted.files)
           files.push_back(of.folder.empty() ? file.path : of.folder + "/" + file.path);
         return Maybe(files);
       }},
      {"start", a("string"), "the command that starts the run, in the folder of the files",
       [](const Of& of) { return json(of.emitted.start); }},
      {"cannot", texts, "what the framework cannot run; if there is any, no file is written",
       [](const Of& of) { return json(of.emitted.cannot); }},
      {"notes", texts, "differences from the prediction",
       [](const Of& of) { return json(of.emitted.notes); }},
      {"layout", a("string"), "the layout in words", [](const Of& of) { return json(of.layout); }},
      {"step", a("number"), "predicted seconds of a step",
       [](const Of& of) { return json(of.step.count()); }},
      {"interval", low_and_high(), "its 90 % interval",
       [](const Of& of) { return json{of.low.count(), of.high.count()}; }},
      {"memory", a("integer"), "bytes of the rank that needs most",
       [](const Of& of) { return json(of.memory.value); }},
      {"tokens_per_second", a("number"), "of a device",
       [](const Of& of) { return json(of.tokens_per_second); }}};
  return keys;
}

}  // namespace

json to_json(const EmitAnswer& answer) { return object_of(emit_keys(), answer); }

std::string emit_schema() {
  return schema_document("polyphony emit --format json",
                         schema_of(emit_keys(), "a layout as another framework's settings"),
                         json::object());
}

}  // namespace polyphony::sim
