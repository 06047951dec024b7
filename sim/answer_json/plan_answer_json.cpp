#include "sim/answer_json/answer_schema.h"
#include "sim/answer_json/answers_json.h"
#include "sim/text/json_keys.h"

namespace polyphony::sim {
namespace {

using nlohmann::json;

const JsonKeys<PlannedModule>& module_keys() {
  using Of = PlannedModule;
  static const JsonKeys<Of> keys{
      {"module", a("string"), "its name", [](const Of& m) { return m.name; }},
      {"kind", a("string"), "what it is", [](const Of& m) { return m.kind; }},
      {"trainable", a("string"), "how much of it trains", [](const Of& m) { return m.trainable; }},
      {"parameters", a("integer"), "of the whole module",
       [](const Of& m) { return m.parameters; }}};
  return keys;
}

const JsonKeys<PlannedStage>& stage_keys() {
  using Of = PlannedStage;
  static const JsonKeys<Of> keys{
      {"stage", a("integer"), "of its branch", [](const Of& s) { return s.stage; }},
      {"ranks", a("string"), "first and last", [](const Of& s) { return s.ranks; }},
      {"grid", a("string"), "degrees of its branch", [](const Of& s) { return s.grid; }},
      {"layers", a("string"), "module [first, last + 1)", [](const Of& s) { return s.layers; }},
      {"parameters_per_rank", a("integer"), "before sharding",
       [](const Of& s) { return s.parameters_per_rank; }},
      {"forward_seconds", a("number"), "of a mean microbatch",
       [](const Of& s) { return s.forward.count(); }},
      {"backward_seconds", a("number"), "of the same, with what is computed again",
       [](const Of& s) { return s.backward.count(); }},
      {"memory_bytes", a("integer"), "predicted, of the worst rank and all that it holds",
       [](const Of& s) { return s.memory.value; }}};
  return keys;
}

const JsonKeys<OtherSplit>& other_keys() {
  using Of = OtherSplit;
  static const JsonKeys<Of> keys{
      {"blocks", list_of(a("integer")), "of each stage", [](const Of& o) { return o.blocks; }},
      {"dearest_seconds", a("number"), "its dearest rank's cost of a microbatch",
       [](const Of& o) { return o.dearest.count(); }},
      {"memory_bytes", a("integer"), "of the layout's worst rank then, at least",
       [](const Of& o) { return o.memory.value; }}};
  return keys;
}

std::optional<json> other(const std::optional<OtherSplit>& split) {
  if (!split) return {};
  return object_of(other_keys(), *split);
}

const JsonKeys<PlannedSplit::Boundary>& boundary_keys() {
  using Of = PlannedSplit::Boundary;
  static const json schema = schema_of(other_keys(), "another split");
  static const JsonKeys<Of> keys{{"earlier", schema, "one block more for the stage before it",
                                  [](const Of& b) { return other(b.earlier); }, false},
                                 {"later", schema, "one block more for the stage after it",
                                  [](const Of& b) { return other(b.later); }, false}};
  return keys;
}

const JsonKeys<PlannedSplit>& split_keys() {
  using Of = PlannedSplit;
  static const json schema = schema_of(other_keys(), "another split");
  static const JsonKeys<Of> keys{
      {"branch", a("string"), "its modules", [](const Of& s) { return s.branch; }},
      {"given", a("boolean"), "whether the layout says it", [](const Of& s) { return s.given; }},
      {"exact", a("boolean"), "whether other splits are the best of all, not of those found",
       [](const Of& s) { return s.exact; }},
      {"blocks", list_of(a("integer")), "of each stage", [](const Of& s) { return s.blocks; }},
      {"bottleneck", a("string"), "stages of the dearest rank",
       [](const Of& s) { return s.bottleneck; }},
      {"dearest_seconds", a("number"),
       "of a mean microbatch: that rank's forwards, backwards and waits for messages",
       [](const Of& s) { return s.dearest.count(); }},
      {"mean_seconds", a("number"), "the same of all ranks in the mean",
       [](const Of& s) { return s.mean.count(); }},
      {"boundaries", list_of(schema_of(boundary_keys(), "one block moved")), "after stage 0, 1, …",
       [](const Of& s) { return array_of(boundary_keys(), s.boundaries); }},
      {"better", schema, "what an aware balance chooses, where it is another",
       [](const Of& s) { return other(s.better); }, false},
      {"next", schema, "the next best, where this is what it chooses",
       [](const Of& s) { return other(s.next); }, false}};
  return keys;
}

const JsonKeys<PlannedWork::Spread>& spread_keys() {
  using Of = PlannedWork::Spread;
  static const JsonKeys<Of> keys{{"unplanned", a("number"), "in the order of the batch",
                                  [](const Of& s) { return s.unplanned; }},
                                 {"planned", a("number"), "as the planner deals samples",
                                  [](const Of& s) { return s.planned; }},
                                 {"least", a("number"), "no dealing of whole samples gets below",
                                  [](const Of& s) { return s.least; }}};
  return keys;
}

const JsonKeys<MicrobatchWork>& microbatches_keys() {
  using Of = MicrobatchWork;
  static const JsonKeys<Of> keys{
      {"module", a("string"), "its name", [](const Of& m) { return m.module; }},
      {"unplanned_seconds", list_of(a("number")), "in the order of the batch, lane by lane",
       [](const Of& m) { return m.unplanned; }},
      {"planned_seconds", list_of(a("number")),
       "as the planner deals samples; of planner dip sub-microbatches, in the order in which they "
       "run",
       [](const Of& m) { return m.planned; }}};
  return keys;
}

template <class Of>
JsonKey<Of> microbatches_key() {
  return {"microbatches", list_of(schema_of(microbatches_keys(), "of one module")),
          "what each computes, forward and backward, along its module's pipeline",
          [](const Of& w) { return array_of(microbatches_keys(), w.microbatches); }};
}

const JsonKeys<PlannedWork>& work_keys() {
  using Of = PlannedWork;
  static const json spread =
      schema_of(spread_keys(), "standard deviation over mean of microbatches' work");
  static const JsonKeys<Of> keys{
      {"planner", a("string"), "whose it is", [](const Of& w) { return w.planner; }},
      {"samples", a("integer"), "of the batch", [](const Of& w) { return w.samples; }},
      {"deferred", a("integer"), "that wait for the next microbatch",
       [](const Of& w) { return w.deferred; }},
      {"encoder", spread, "encoders, as one",
       [](const Of& w) { return object_of(spread_keys(), w.encoder); }},
      {"language", spread, "the language module",
       [](const Of& w) { return object_of(spread_keys(), w.language); }},
      microbatches_key<Of>(),
      {"step_seconds", a("number"), "estimated", [](const Of& w) { return w.step.count(); }},
      {"unplanned_seconds", a("number"), "the same without a planner",
       [](const Of& w) { return w.unplanned.count(); }},
      {"ranks", list_of(a("integer")), "of a replica, by branch; empty: branches share ranks",
       [](const Of& w) { return w.ranks; }},
      {"stable_batch", a("integer"),
       "samples from which on batches split them alike; 0: none found",
       [](const Of& w) { return w.stable_batch; }},
      {"stable_ranks", list_of(a("integer")), "that split",
       [](const Of& w) { return w.stable_ranks; }}};
  return keys;
}

const JsonKeys<SearchedOrder>& order_keys() {
  using Of = SearchedOrder;
  const auto run_so = [](Recipe recipe) {
    return [recipe](const Of& o) { return o.forwards[static_cast<std::size_t>(recipe)]; };
  };
  static const JsonKeys<Of> keys{
      {"works", a("integer"), "of encoders, all lanes'", [](const Of& o) { return o.works; }},
      {"filled", a("integer"), "of these that hold items", [](const Of& o) { return o.filled; }},
      {"as_the_layout_says", a("integer"), "forwards that recompute that", run_so(Recipe::layout)},
      {"kept", a("integer"), "forwards whose backward recomputes nothing", run_so(Recipe::none)},
      {"recomputed_selectively", a("integer"), "forwards whose backward recomputes attention",
       run_so(Recipe::selective)},
      {"recomputed", a("integer"), "forwards whose backward recomputes all", run_so(Recipe::full)},
      {"offloaded", a("integer"), "forwards whose tapes wait in the host's memory",
       run_so(Recipe::offload)},
      {"believed_seconds", a("number"), "of the actions, by what the search orders by",
       [](const Of& o) { return o.believed.count(); }},
      {"bound_seconds", a("number"), "no order of them takes less, by the same",
       [](const Of& o) { return o.bound.count(); }},
      {"step_seconds", a("number"), "estimated", [](const Of& o) { return o.step.count(); }},
      {"unplanned_seconds", a("number"), "the same without the planner",
       [](const Of& o) { return o.unplanned.count(); }},
      {"unplanned_fits", a("boolean"), "that, in the devices' memory",
       [](const Of& o) { return o.unplanned_fits; }},
      microbatches_key<Of>()};
  return keys;
}

const JsonKeys<PlannedProgram>& program_keys() {
  using Of = PlannedProgram;
  static const JsonKeys<Of> keys{
      {"ranks", a("integer"), "that run it", [](const Of& p) { return p.ranks; }},
      {"ops", a("integer"), "of all ranks", [](const Of& p) { return p.ops; }},
      {"messages", a("integer"), "between them", [](const Of& p) { return p.messages; }},
      {"hash", a("string"), "of all of it", [](const Of& p) { return std::to_string(p.hash); }}};
  return keys;
}

// The layout's keys are left out where there is none.
template <class Value>
std::function<std::optional<json>(const PlanAnswer&)> of_layout(Value value) {
  return [value](const PlanAnswer& answer) -> std::optional<json> {
    if (!answer.program) return {};
    return value(answer);
  };
}

const JsonKeys<PlanAnswer>& plan_keys() {
  using Of = PlanAnswer;
  static const JsonKeys<Of> keys{
      {"modules", list_of(schema_of(module_keys(), "a module")), "of the model",
       [](const Of& p) { return array_of(module_keys(), p.modules); }},
      {"layout", a("string"), "in a line", of_layout([](const Of& p) { return p.layout; }), false},
      {"balance", a("string"), "what splits stages that blocks do not",
       of_layout([](const Of& p) { return p.balance; }), false},
      {"device_memory_bytes", a("integer"), "of a rank; 0: not known",
       of_layout([](const Of& p) { return p.device_memory.value; }), false},
      {"stages", list_of(schema_of(stage_keys(), "a pipeline stage")), "of all branches",
       of_layout([](const Of& p) { return array_of(stage_keys(), p.stages); }), false},
      {"splits", list_of(schema_of(split_keys(), "a branch of several stages")),
       "why stages begin and end where they do",
       of_layout([](const Of& p) { return array_of(split_keys(), p.splits); }), false},
      {"order", schema_of(order_keys(), "what planner dip makes of it"),
       "of the typical batch, where the layout has planner dip",
       [](const Of& p) -> std::optional<json> {
         if (!p.order) return {};
         return object_of(order_keys(), *p.order);
       },
       false},
      {"work", schema_of(work_keys(), "what the layout's planner makes of it"),
       "of the typical batch, where the layout has planner entrain",
       [](const Of& p) -> std::optional<json> {
         if (!p.work) return {};
         return object_of(work_keys(), *p.work);
       },
       false},
      {"program", schema_of(program_keys(), "what every rank does in a step"), "of one step",
       of_layout([](const Of& p) { return object_of(program_keys(), *p.program); }), false},
      {"simulation_only", a("string"), "why the executor cannot run it",
       [](const Of& p) -> std::optional<json> {
         if (p.simulation_only.empty()) return {};
         return p.simulation_only;
       },
       false}};
  return keys;
}

}  // namespace

json to_json(const PlanAnswer& answer) { return object_of(plan_keys(), answer); }

std::string plan_schema() {
  return schema_document("polyphony plan --format json",
                         schema_of(plan_keys(), "What a scenario's layout means"), {});
}

}  // namespace polyphony::sim
