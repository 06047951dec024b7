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
      {"module", a("string"), "name of the module", [](const Of& m) { return m.module.name; }},
      {"stages", a("integer"), "number of pipeline stages assigned to the module",
       [](const Of& m) { return m.grid().pp; }},
      {"blocks", list_of(a("integer")),
       "number of blocks of each stage; empty: the module has one stage",
       [](const Of& m) { return m.grid().blocks; }},
      {"dearest_seconds", a("number"),
       "cost of the module's most expensive stage for a mean microbatch, in seconds: forward and "
       "backward pass, and waiting for messages",
       [](const Of& m) { return m.row.split.bottleneck[m.at].count(); }}};
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
      {"balance", a("string"), "how costs were counted: aware of what trains, or unaware",
       [](const Of& of) { return name(of.row.split.layout.balance); }},
      {"layout", a("string"), "the layout in words",
       [](const Of& of) { return describe(of.model, of.row.split.layout); }},
      {"layout_form", reference_to("layout"), "the layout in the form of a scenario's /layout",
       [](const Of& of) { return json(json_value(of.row.split.layout, of.model)); }},
      {"modules", list_of(schema_of(module_keys(), "the pipeline of one module")),
       "one entry per module, in the order of the model",
       [](const Of& of) {
         json list = json::array();
         for (std::size_t m = 0; m < of.model.modules.size(); ++m)
           if (grid_owner(of.model, ModuleId(m)) == ModuleId(m))
             list.push_back(object_of(module_keys(), ModuleOf{of.row, of.model.modules[m], m}));
         return list;
       }},
      {"dearest_seconds", a("number"),
       "cost of the most expensive stage of all modules, in seconds",
       [](const Of& of) { return of.row.split.most().count(); }},
      {"step_seconds", a("number"), "estimated step time in seconds; only for a legal layout",
       [](const Of& of) { return if_legal(of, of.row.step.count()); }, false},
      {"memory_bytes", a("integer"), "peak memory of the worst rank; only for a legal layout",
       [](const Of& of) { return if_legal(of, of.row.memory.value); }, false},
      {"refused", a("string"), "why the layout is not legal; only for an illegal layout",
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
      {"stages", a("integer"), "total number of pipeline stages of all modules",
       [](const Of& of) { return of.stages; }},
      {"deals", list_of(schema_of(row_keys(), "an assignment of stages to modules")),
       "one with balance aware, one unaware", [](const Of& of) {
         return array_of(row_keys(), of.rows,
                         [&](const JointRow& row) { return RowOf{row, of.scenario->model}; });
       }}};
  return keys;
}

}  // namespace

json to_json(const JointAnswer& answer) { return object_of(joint_keys(), answer); }

std::string joint_schema() {
  return schema_document("polyphony plan --stages --format json",
                         schema_of(joint_keys(), "assignment of pipeline stages to modules"),
                         layout_definitions());
}

}  // namespace polyphony::sim
