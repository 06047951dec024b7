#include "sim/answer_json/answer_schema.h"
#include "sim/answer_json/answers_json.h"
#include "sim/text/json_keys.h"

namespace polyphony::sim {
namespace {

using nlohmann::json;
using Maybe = std::optional<json>;

const JsonKeys<ImportReport::Line>& line_keys() {
  using Of = ImportReport::Line;
  static const JsonKeys<Of> keys{
      {"setting", a("string"), "the setting as written; empty: the text is about no single setting",
       [](const Of& of) { return json(of.setting); }},
      {"place", a("string"), "where it stands: file and line, or file and JSON pointer",
       [](const Of& of) { return json(of.place); }},
      {"text", a("string"), "what it became, or why it does not matter",
       [](const Of& of) { return json(of.text); }}};
  return keys;
}

const JsonKeys<ImportReport>& report_keys() {
  using Of = ImportReport;
  const auto lines = [](const char* key, const char* about, auto member) {
    return JsonKey<Of>{key, list_of(schema_of(line_keys(), "a setting")), about,
                       [member](const Of& of) { return array_of(line_keys(), of.*member); }};
  };
  static const JsonKeys<Of> keys{
      lines("used", "settings that are part of the scenario", &Of::used),
      lines("approximated", "settings of which the scenario has the nearest", &Of::approximated),
      lines("not_modeled", "settings that change time or memory and that no prediction knows",
            &Of::not_modeled),
      lines("ignored", "settings that change neither time nor memory", &Of::ignored),
      lines("unknown", "settings that are not understood", &Of::unknown),
      lines("contradictions", "settings that exclude each other", &Of::contradictions),
      lines("assumed", "what no setting states", &Of::assumed),
      {"off", a("integer"), "number of printed settings that are switched off",
       [](const Of& of) { return json(of.off); }}};
  return keys;
}

const JsonKeys<ImportAnswer>& import_keys() {
  using Of = ImportAnswer;
  static const JsonKeys<Of> keys{
      {"framework", a("string"), "the framework whose settings they are",
       [](const Of& of) { return json(name(of.imported.framework)); }},
      {"stack", a("string"), "the software stack by which it is predicted",
       [](const Of& of) { return json(of.imported.stack); }},
      {"layout", a("string"), "the layout in words; empty: it cannot be predicted",
       [](const Of& of) { return json(of.layout); }},
      {"illegal", a("string"), "why the layout cannot be predicted; empty: it can",
       [](const Of& of) { return json(of.imported.illegal); }},
      {"measured_step", or_null(a("number")),
       "seconds of a step by a log or profiles; null: none has steps",
       [](const Of& of) {
         return of.step.measured.count() > 0 ? json(of.step.measured.count()) : json();
       }},
      {"predicted_step", or_null(a("number")),
       "seconds of a step as predicted; null: it cannot be predicted",
       [](const Of& of) {
         return of.step.predicted.count() > 0 ? json(of.step.predicted.count()) : json();
       }},
      {"predicted_memory", or_null(a("integer")), "bytes of the rank that needs most",
       [](const Of& of) { return of.step.memory.value > 0 ? json(of.step.memory.value) : json(); }},
      {"report", schema_of(report_keys(), ""), "what became of every setting",
       [](const Of& of) { return Maybe(object_of(report_keys(), of.imported.report)); }},
      {"scenario", a("object"), "the scenario (`polyphony schema scenario`)",
       [](const Of& of) { return json::parse(of.imported.text); }}};
  return keys;
}

}  // namespace

json to_json(const ImportAnswer& answer) { return object_of(import_keys(), answer); }

std::string import_schema() {
  return schema_document("polyphony import --format json",
                         schema_of(import_keys(), "a scenario from another framework's settings"),
                         json::object());
}

}  // namespace polyphony::sim
