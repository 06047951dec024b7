#include "shared/scenario_io/scenario_json.h"
#include "sim/answer_json/answer_schema.h"
#include "sim/answer_json/answers_json.h"
#include "sim/text/json_keys.h"

namespace polyphony::sim {
namespace {

using nlohmann::json;

struct ModuleOf {
  const JointRow& row;
  const Module& module;
  std::size_t at;
  const ModuleLayout& grid() const { return row.split.layout.modules[at]; }
};

const JsonKeys<ModuleOf>& module_keys() {
  using Of = ModuleOf;
  static const JsonKeys<Of> keys{
      {"module", a("string"), "its name", [](const Of& m) { return m.module.name; }},
      {"stages", a("integer"), "dealt to it", [](const Of& m) { return m.grid().pp; }},
      {"blocks", list_of(a("integer")), "of each; empty: it has one stage",
       [](const Of& m) { return m.grid().blocks; }},
      {"dearest_seconds", a("number"),
       "of a mean microbatch: its dearest stage's forward, backward and waits for messages",
       [](const Of& m) { return m.row.split.dearest[m.at].count(); }}};
  return keys;
}

struct RowOf {
  const JointRow& row;
  const Model& model;
};

std::optional<json> if_legal(const RowOf& of, const json& value) {
  if (!of.row.refused.empty()) return {};
  return value;
}

const JsonKeys<RowOf>& row_keys() {
  using Of = RowOf;
  static const JsonKeys<Of> keys{
      {"balance", a("string"), "by which costs it was chosen",
       [](const Of& of) { return name(of.row.split.layout.balance); }},
      {"layout", a("string"), "in words",
       [](const Of& of) { return describe(of.model, of.row.split.layout); }},
      {"layout_form", reference_to("layout"), "as a scenario's /layout says it",
       [](const Of& of) { return json::parse(resolved_text(of.row.split.layout, of.model)); }},
      {"modules", list_of(schema_of(module_keys(), "a module's pipeline")), "in the model's order",
       [](const Of& of) {
         json list = json::array();
         for (std::size_t m = 0; m < of.model.modules.size(); ++m)
           if (grid_owner(of.model, ModuleId(m)) == ModuleId(m))
             list.push_back(object_of(module_keys(), ModuleOf{of.row, of.model.modules[m], m}));
         return list;
       }},
      {"dearest_seconds", a("number"), "the dearest stage of all",
       [](const Of& of) { return of.row.split.most().count(); }},
      {"step_seconds", a("number"), "estimated, of a legal layout",
       [](const Of& of) { return if_legal(of, of.row.step.count()); }, false},
      {"memory_bytes", a("integer"), "of its worst rank",
       [](const Of& of) { return if_legal(of, of.row.memory.value); }, false},
      {"refused", a("string"), "why the layout is not legal",
       [](const Of& of) -> std::optional<json> {
         if (of.row.refused.empty()) return {};
         return of.row.refused;
       },
       false}};
  return keys;
}

const JsonKeys<JointAnswer>& joint_keys() {
  using Of = JointAnswer;
  static const JsonKeys<Of> keys{
      {"stages", a("integer"), "of all modules together", [](const Of& of) { return of.stages; }},
      {"deals", list_of(schema_of(row_keys(), "stages dealt to modules")), "aware, unaware",
       [](const Of& of) {
         return array_of(row_keys(), of.rows,
                         [&](const JointRow& row) { return RowOf{row, of.scenario->model}; });
       }}};
  return keys;
}

}  // namespace

json to_json(const JointAnswer& answer) { return object_of(joint_keys(), answer); }

std::string joint_schema() {
  return schema_document("polyphony plan --stages --format json",
                         schema_of(joint_keys(), "pipeline stages dealt to modules"),
                         layout_definitions());
}

}  // namespace polyphony::sim
