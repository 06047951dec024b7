// Small runs on in-process ranks, and access to their model, for tests of checkpoints.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "exec/checkpoint/checkpoint.h"
#include "exec/planning/step_data.h"
#include "exec/transport/in_process.h"
#include "shared/scenario_io/run_record_json.h"
#include "shared/scenario_io/scenario_json.h"
#include "tests/exec/support/shards.h"
#include "tests/exec/support/temp_folder.h"

namespace polyphony::exec::testing {

// scenarios/tiny.json with four key/value heads, so that tp 4 is legal.
inline Scenario tiny() {
  const std::string file = "scenarios/tiny.json";
  Scenario scenario = read_scenario(slurp(file), file, slurp);
  scenario.model.modules.back().kv_heads = 4;
  return scenario;
}
inline Layout homogeneous(int tp, int pp, int dp) {
  ModuleLayout grid;
  grid.tp = tp;
  grid.pp = pp;
  grid.ranks = tp * pp * dp;
  return {.placement = Placement::homogeneous, .modules = {grid, grid, grid}, .microbatches = 2};
}
// The encoder on ranks of its own, before the language module's.
inline Layout non_colocated(const ModuleLayout& vision, ModuleLayout language) {
  language.first_rank = vision.ranks;
  return {.placement = Placement::non_colocated,
          .modules = {vision, vision, language},
          .microbatches = 2};
}

// One rank of a run: its Program's structure and its Runner.
struct Run {
  Scenario scenario;
  Layout layout;
  Plan plan;
  std::unique_ptr<Dataset> dataset;
  StepPlanner planner;
  Program structure;
  Runner runner;
  Transport& transport;
  std::function<void()> before_update;  // RunnerOptions
  std::vector<std::string> changed;     // what the scenario changes, since the loaded checkpoint

  Run(Transport& transport_, Scenario scenario_, Layout layout_)
      : scenario(std::move(scenario_)),
        layout(std::move(layout_)),
        plan(make_plan(scenario, layout)),
        dataset(open_dataset(scenario, "")),
        planner(transport_, scenario, layout, plan, *dataset, Planner::each),
        structure(planner.lower(planner.part(0))),
        runner(transport_, scenario, structure,
               {.before_update =
                    [this] {
                      if (before_update) before_update();
                    }}),
        transport(transport_) {}

  double train(std::uint64_t step) {
    const Program program = planner.lower(planner.part(step));
    const auto inputs = pack_inputs(program, transport.rank(), *dataset, {});
    return runner
        .train_step(
            program, [&](WorkId work) -> const WorkInput& { return inputs.at(work); }, 1e-2)
        .loss;
  }
  void save(const std::string& folder, std::int64_t step, const KeptCheckpoints& keep = {}) {
    save_checkpoint(folder, step, transport, runner, structure, run_record(scenario), keep);
  }
  void load(const std::string& folder, std::int64_t step) {
    RankState state = rank_state(structure, transport.rank(), runner.stores());
    state.run = run_record(scenario);
    changed = load_checkpoint(folder, step, transport, state, structure);
    runner.set_updates(state.updates);
  }
};
inline void on_ranks(const Layout& layout, const Scenario& scenario,
                     const std::function<void(Run&)>& body) {
  run_in_process(world_size(layout), [&](Transport& transport) {
    Run run(transport, scenario, layout);
    body(run);
  });
}

// Two steps of training on two ranks, then a checkpoint of step 2.
inline void save_one(const std::string& folder, const Scenario& scenario = tiny()) {
  on_ranks(homogeneous(2, 1, 1), scenario, [&](Run& run) {
    run.train(0);
    run.train(1);
    run.save(folder, 2);
  });
}
inline std::vector<std::string> entries(const std::string& folder) {
  std::vector<std::string> names;
  for (const std::filesystem::directory_entry& entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

// Whole tensors of the model, assembled from the ranks' memory without the checkpoint code.
class Gathered {
 public:
  void add(Run& run) {
    for (HeldParameters* store : run.runner.stores()) add(*store);
    const std::lock_guard lock(mutex_);
    steps = run.runner.updates();
  }
  void add(HeldParameters& store) {
    const std::lock_guard lock(mutex_);
    const ShardIndex& place = store.options().place;
    for (const LocalParameter* p : store.parameters())
      if (p->value.numel() > 0) put(p->spec, "", place, 0, p->value.view({-1}));
    for (const HeldPiece& piece : store.pieces()) {
      const auto part = [&](const char* suffix, const torch::Tensor& kept) {
        if (kept.defined()) put(piece.parameter->spec, suffix, place, piece.elements.begin, kept);
      };
      part("", piece.value);
      part(".m", piece.first_moment);
      part(".v", piece.second_moment);
      part(".master", piece.master);
    }
  }
  std::map<std::string, torch::Tensor> whole;
  std::int64_t steps = 0;

 private:
  // `part`: a part of what `place` holds, from element `first` on. Copies must be equal.
  void put(const Parameter& spec, const std::string& suffix, const ShardIndex& place,
           std::int64_t first, const torch::Tensor& part) {
    torch::Tensor& tensor = whole[spec.name + suffix];
    if (!tensor.defined()) tensor = torch::full(spec.shape, std::nan(""), part.options());
    CHECK(put_local(tensor, spec, place, part, first));
  }
  std::mutex mutex_;
};
inline void check_equal(const Gathered& a, const Gathered& b) {
  REQUIRE(a.whole.size() == b.whole.size());
  for (const auto& [name, tensor] : a.whole) {
    CAPTURE(name);
    CHECK(b.whole.at(name).equal(tensor));
  }
  CHECK(a.steps == b.steps);
}

}  // namespace polyphony::exec::testing
