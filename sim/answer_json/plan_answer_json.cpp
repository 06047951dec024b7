#include "sim/answer_json/answer_schema.h"
#include "sim/answer_json/answers_json.h"
#include "sim/text/json_keys.h"

namespace polyphony::sim {
namespace {

using nlohmann::json;

const JsonKeys<PlannedModule>& module_keys() {
  using Of = PlannedModule;
  static const JsonKeys<Of> keys{
      {"module", a("string"), "name of the module", [](const Of& m) { return m.name; }},
      {"kind", a("string"), "kind of module", [](const Of& m) { return m.kind; }},
      {"trainable", a("string"), "which part of it is trained",
       [](const Of& m) { return m.trainable; }},
      {"parameters", a("integer"), "number of parameters of the whole module",
       [](const Of& m) { return m.parameters; }}};
  return keys;
}

const JsonKeys<PlannedStage>& stage_keys() {
  using Of = PlannedStage;
  static const JsonKeys<Of> keys{
      {"stage", a("integer"), "number of the stage in its branch, from 0",
       [](const Of& s) { return s.stage; }},
      {"ranks", a("string"), "first and last rank", [](const Of& s) { return s.ranks; }},
      {"grid", a("string"), "parallel degrees of its branch", [](const Of& s) { return s.grid; }},
      {"layers", a("string"), "layers by module: [first, last + 1)",
       [](const Of& s) { return s.layers; }},
      {"parameters_per_rank", a("integer"), "parameters per rank before data-parallel sharding",
       [](const Of& s) { return s.parameters_per_rank; }},
      {"forward_seconds", a("number"), "forward time for a mean microbatch, in seconds",
       [](const Of& s) { return s.forward.count(); }},
      {"backward_seconds", a("number"),
       "backward time for a mean microbatch including recomputation, in seconds",
       [](const Of& s) { return s.backward.count(); }},
      {"memory_bytes", a("integer"),
       "predicted peak memory of its worst rank, including other stages on that rank",
       [](const Of& s) { return s.memory.value; }}};
  return keys;
}

const JsonKeys<OtherSplit>& other_keys() {
  using Of = OtherSplit;
  static const JsonKeys<Of> keys{
      {"blocks", list_of(a("integer")), "number of blocks of each stage",
       [](const Of& o) { return o.blocks; }},
      {"dearest_seconds", a("number"),
       "cost of the bottleneck rank for a mean microbatch, in seconds",
       [](const Of& o) { return o.bottleneck_time.count(); }},
      {"memory_bytes", a("integer"),
       "lower bound of the peak memory of the layout's worst rank with this split",
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
  static const JsonKeys<Of> keys{
      {"earlier", schema, "the split with one more block in the stage before the boundary",
       [](const Of& b) { return other(b.earlier); }, false},
      {"later", schema, "the split with one more block in the stage after the boundary",
       [](const Of& b) { return other(b.later); }, false}};
  return keys;
}

const JsonKeys<PlannedSplit>& split_keys() {
  using Of = PlannedSplit;
  static const json schema = schema_of(other_keys(), "another split");
  static const JsonKeys<Of> keys{
      {"branch", a("string"), "modules of the branch", [](const Of& s) { return s.branch; }},
      {"given", a("boolean"), "whether the layout states the split",
       [](const Of& s) { return s.given; }},
      {"exact", a("boolean"),
       "whether better and next are the best of all splits, rather than of those found by a "
       "heuristic",
       [](const Of& s) { return s.exact; }},
      {"blocks", list_of(a("integer")), "number of blocks of each stage",
       [](const Of& s) { return s.blocks; }},
      {"bottleneck", a("string"), "stages of the bottleneck, the most expensive rank",
       [](const Of& s) { return s.bottleneck; }},
      {"dearest_seconds", a("number"),
       "cost of the bottleneck rank for a mean microbatch, in seconds: forward and backward "
       "passes, and waiting for messages",
       [](const Of& s) { return s.bottleneck_time.count(); }},
      {"mean_seconds", a("number"), "mean cost over all ranks, in seconds",
       [](const Of& s) { return s.mean.count(); }},
      {"boundaries", list_of(schema_of(boundary_keys(), "one block moved")),
       "boundaries after stage 0, 1, …",
       [](const Of& s) { return array_of(boundary_keys(), s.boundaries); }},
      {"better", schema,
       "the split that an aware balance chooses; only if it differs from this one",
       [](const Of& s) { return other(s.better); }, false},
      {"next", schema, "the next best split; only if this one is what an aware balance chooses",
       [](const Of& s) { return other(s.next); }, false}};
  return keys;
}

const JsonKeys<PlannedWork::Spread>& spread_keys() {
  using Of = PlannedWork::Spread;
  static const JsonKeys<Of> keys{
      {"unplanned", a("number"), "spread without the planner, in the order of the batch",
       [](const Of& s) { return s.unplanned; }},
      {"planned", a("number"), "spread with the planner", [](const Of& s) { return s.planned; }},
      {"least", a("number"), "lower bound of the spread over all assignments of whole samples",
       [](const Of& s) { return s.least; }}};
  return keys;
}

const JsonKeys<MicrobatchWork>& microbatches_keys() {
  using Of = MicrobatchWork;
  static const JsonKeys<Of> keys{
      {"module", a("string"), "name of the module", [](const Of& m) { return m.module; }},
      {"unplanned_seconds", list_of(a("number")),
       "seconds of each microbatch without the planner, ordered by data-parallel replica",
       [](const Of& m) { return m.unplanned; }},
      {"planned_seconds", list_of(a("number")),
       "seconds of each microbatch with the planner; for planner dip, of each sub-microbatch, in "
       "execution order",
       [](const Of& m) { return m.planned; }}};
  return keys;
}

template <class Of>
JsonKey<Of> microbatches_key() {
  return {"microbatches", list_of(schema_of(microbatches_keys(), "microbatches of one module")),
          "compute time of microbatches: forward and backward through all stages of the module",
          [](const Of& w) { return array_of(microbatches_keys(), w.microbatches); }};
}

const JsonKeys<PlannedWork>& work_keys() {
  using Of = PlannedWork;
  static const json spread =
      schema_of(spread_keys(), "spread of the work of microbatches: standard deviation / mean");
  static const JsonKeys<Of> keys{
      {"planner", a("string"), "name of the planner", [](const Of& w) { return w.planner; }},
      {"samples", a("integer"), "number of samples in the batch",
       [](const Of& w) { return w.samples; }},
      {"deferred", a("integer"), "number of samples deferred to the next microbatch",
       [](const Of& w) { return w.deferred; }},
      {"encoder", spread, "spread of the work of all encoders together",
       [](const Of& w) { return object_of(spread_keys(), w.encoder); }},
      {"language", spread, "spread of the work of the language module",
       [](const Of& w) { return object_of(spread_keys(), w.language); }},
      microbatches_key<Of>(),
      {"step_seconds", a("number"), "estimated step time with the planner, in seconds",
       [](const Of& w) { return w.step.count(); }},
      {"unplanned_seconds", a("number"), "estimated step time without a planner, in seconds",
       [](const Of& w) { return w.unplanned.count(); }},
      {"ranks", list_of(a("integer")),
       "ranks of each branch in one data-parallel replica; empty: branches share ranks",
       [](const Of& w) { return w.ranks; }},
      {"stable_batch", a("integer"),
       "number of samples from which on every batch suggests the same division of ranks; 0: none "
       "found",
       [](const Of& w) { return w.stable_batch; }},
      {"stable_ranks", list_of(a("integer")), "that division of ranks, by branch",
       [](const Of& w) { return w.stable_ranks; }}};
  return keys;
}

const JsonKeys<SearchedOrder>& order_keys() {
  using Of = SearchedOrder;
  const auto run_so = [](Recipe recipe) {
    return [recipe](const Of& o) { return o.forwards[static_cast<std::size_t>(recipe)]; };
  };
  static const JsonKeys<Of> keys{
      {"works", a("integer"), "number of encoder sub-microbatches, over all data-parallel replicas",
       [](const Of& o) { return o.works; }},
      {"filled", a("integer"), "number of these that have items",
       [](const Of& o) { return o.filled; }},
      {"as_the_layout_says", a("integer"),
       "forward actions whose backward recomputes what the layout states", run_so(Recipe::layout)},
      {"kept", a("integer"), "forward actions whose backward recomputes nothing",
       run_so(Recipe::none)},
      {"recomputed_selectively", a("integer"),
       "forward actions whose backward recomputes attention", run_so(Recipe::selective)},
      {"recomputed", a("integer"), "forward actions whose backward recomputes everything",
       run_so(Recipe::full)},
      {"offloaded", a("integer"),
       "forward actions whose saved activations are offloaded to host memory",
       run_so(Recipe::offload)},
      {"believed_seconds", a("number"),
       "makespan of the order in seconds, by the costs that the planner uses",
       [](const Of& o) { return o.believed.count(); }},
      {"bound_seconds", a("number"),
       "lower bound of the makespan of any order in seconds, by the same costs",
       [](const Of& o) { return o.bound.count(); }},
      {"step_seconds", a("number"), "estimated step time with the planner, in seconds",
       [](const Of& o) { return o.step.count(); }},
      {"unplanned_seconds", a("number"), "estimated step time without the planner, in seconds",
       [](const Of& o) { return o.unplanned.count(); }},
      {"unplanned_fits", a("boolean"),
       "whether the step without the planner fits in the devices' memory",
       [](const Of& o) { return o.unplanned_fits; }},
      microbatches_key<Of>()};
  return keys;
}

const JsonKeys<PlannedProgram>& program_keys() {
  using Of = PlannedProgram;
  static const JsonKeys<Of> keys{
      {"ranks", a("integer"), "number of ranks", [](const Of& p) { return p.ranks; }},
      {"ops", a("integer"), "number of ops of all ranks", [](const Of& p) { return p.ops; }},
      {"messages", a("integer"), "number of messages between ranks",
       [](const Of& p) { return p.messages; }},
      {"hash", a("string"), "hash of the whole Program",
       [](const Of& p) { return std::to_string(p.hash); }}};
  return keys;
}

// Keys about the layout are omitted if the scenario has none.
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
      {"modules", list_of(schema_of(module_keys(), "a module")), "modules of the model",
       [](const Of& p) { return array_of(module_keys(), p.modules); }},
      {"layout", a("string"), "the layout in one line",
       of_layout([](const Of& p) { return p.layout; }), false},
      {"balance", a("string"), "how stages are balanced if the layout does not state their blocks",
       of_layout([](const Of& p) { return p.balance; }), false},
      {"device_memory_bytes", a("integer"), "memory of one device; 0: unknown",
       of_layout([](const Of& p) { return p.device_memory.value; }), false},
      {"stages", list_of(schema_of(stage_keys(), "a pipeline stage")),
       "pipeline stages of all branches",
       of_layout([](const Of& p) { return array_of(stage_keys(), p.stages); }), false},
      {"splits", list_of(schema_of(split_keys(), "a branch with several stages")),
       "comparison of the split into stages with other splits",
       of_layout([](const Of& p) { return array_of(split_keys(), p.splits); }), false},
      {"order", schema_of(order_keys(), "the order found by planner dip"),
       "plan of the typical batch; only if the layout has planner dip",
       [](const Of& p) -> std::optional<json> {
         if (!p.order) return {};
         return object_of(order_keys(), *p.order);
       },
       false},
      {"work", schema_of(work_keys(), "the assignment found by planner entrain"),
       "plan of the typical batch; only if the layout has planner entrain",
       [](const Of& p) -> std::optional<json> {
         if (!p.work) return {};
         return object_of(work_keys(), *p.work);
       },
       false},
      {"program", schema_of(program_keys(), "size of the Program"), "the Program of one step",
       of_layout([](const Of& p) { return object_of(program_keys(), *p.program); }), false},
      {"simulation_only", a("string"), "why the executor cannot run the layout; only if it cannot",
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
                         schema_of(plan_keys(), "modules, stages and costs of a scenario's layout"),
                         {});
}

}  // namespace polyphony::sim
