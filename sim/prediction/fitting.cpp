#include "sim/prediction/fitting.h"

#include <algorithm>

#include "shared/check/check.h"
#include "shared/scenario/typical_batch.h"
#include "shared/text/figure_text.h"
#include "sim/prediction/need.h"

namespace polyphony::sim {
namespace {

// Layouts that do not fold are tried only up to this many ranks and ops; larger ones would take
// seconds, and more than 2 GB.
constexpr int kMostUnfolded = 4096;
constexpr double kMostFittedOps = 4e6;

// Returns for each module whether a change applies to it: modules on the rank, and modules that
// share their grid.
std::vector<bool> concerned(const Layout& layout, const Program& program, Rank worst) {
  std::vector<bool> modules(layout.modules.size(), layout.placement == Placement::homogeneous);
  for (const ParamGroup& group : program.params)
    if (group.rank == worst) modules[group.module.value] = true;
  return modules;
}

struct Step {
  std::optional<Shard> shard{};
  std::optional<Recompute> recompute{};
  int stages = 1, tensor = 1, microbatches = 1;  // factors
};

constexpr Step kSteps[] = {
    {.microbatches = 2},
    {.shard = Shard::optimizer},
    {.recompute = Recompute::selective},
    {.recompute = Recompute::full},
    {.shard = Shard::optimizer, .recompute = Recompute::full},
    {.shard = Shard::optimizer, .recompute = Recompute::full, .microbatches = 2},
    {.stages = 2},
    {.recompute = Recompute::full, .stages = 2},
    {.shard = Shard::optimizer, .recompute = Recompute::full, .stages = 2},
    {.shard = Shard::full, .recompute = Recompute::full},
    {.tensor = 2},
    {.shard = Shard::optimizer, .recompute = Recompute::full, .tensor = 2},
    {.shard = Shard::optimizer, .recompute = Recompute::full, .stages = 4},
    {.shard = Shard::full, .recompute = Recompute::full, .microbatches = 8},
    {.shard = Shard::optimizer, .recompute = Recompute::full, .stages = 8, .tensor = 2},
};

bool less(Recompute a, Recompute b) { return static_cast<int>(a) < static_cast<int>(b); }
bool less(Shard a, Shard b) { return static_cast<int>(a) < static_cast<int>(b); }

void apply(const Step& step, ModuleLayout& grid) {
  if (step.shard && less(grid.shard, *step.shard)) grid.shard = *step.shard;
  if (step.recompute && less(grid.recompute, *step.recompute)) {
    grid.recompute = *step.recompute;
    grid.recompute_blocks.clear();
  }
  if (step.stages * step.tensor > 1) grid.blocks.clear();  // stages are balanced again
  grid.pp *= step.stages;
  grid.tp *= step.tensor;
}

// Describes the differences with the keys of the scenario file.
std::string words(const Layout& before, const Layout& after, const Step& step, std::size_t module) {
  const ModuleLayout &was = before.modules[module], &is = after.modules[module];
  std::string text;
  const auto add = [&](const std::string& what) { text += (text.empty() ? "" : ", ") + what; };
  if (is.recompute != was.recompute) add(std::string("recompute ") + name(is.recompute));
  if (is.shard != was.shard) add(std::string("shard ") + name(is.shard));
  if (is.pp != was.pp) add("pp " + std::to_string(is.pp));
  if (is.tp != was.tp) add("tp " + std::to_string(is.tp));
  if (step.microbatches > 1 && after.microbatches != before.microbatches)
    add("microbatches " + std::to_string(after.microbatches));
  return text;
}

Layout changed(const Layout& layout, const Step& step, const std::vector<bool>& modules) {
  Layout result = layout;
  for (std::size_t m = 0; m < result.modules.size(); ++m)
    if (modules[m]) apply(step, result.modules[m]);
  // With half as many replicas, each gets twice the samples; the size of microbatches is kept.
  const int lanes = layout.modules.back().dp(), left = result.modules.back().dp();
  const int fewer = left > 0 ? std::max(1, lanes / left) : 1;
  result.microbatches = layout.microbatches * step.microbatches * fewer;
  return result;
}

std::optional<Figures> quick_figures(const Scenario& scenario, const Layout& layout,
                                     const HardwareProfile& profile) {
  const PlannedLayout planned = plan_layout(borrow_inputs(scenario, profile), layout);
  auto outcome = predict_folded(planned);
  if (std::holds_alternative<Infeasible>(outcome)) {
    if (scenario.cluster.ranks() > kMostUnfolded ||
        need_of(scenario, planned.plan, layout, {.predictor = Predictor::estimate}).ops >
            kMostFittedOps)
      return {};
    outcome = predict(planned, planned.inputs->typical(), Predictor::estimate);
  }
  if (std::holds_alternative<Infeasible>(outcome)) return {};
  return figures(scenario, std::get<Prediction>(outcome));
}

std::string holdings(const RankMemory& memory) {
  const auto at = [&](BufferKind kind) { return memory.at_peak[static_cast<std::size_t>(kind)]; };
  return "parameters " + bytes_text(at(BufferKind::parameter)) + ", gradients " +
         bytes_text(at(BufferKind::gradient)) + ", optimizer " +
         bytes_text(at(BufferKind::optimizer)) + ", activations " +
         bytes_text(at(BufferKind::tape) + at(BufferKind::workspace)) + ", stage inputs " +
         bytes_text(at(BufferKind::boundary) + at(BufferKind::boundary_gradient)) +
         (memory.libraries > Bytes(0) ? ", libraries " + bytes_text(memory.libraries) : "");
}

}  // namespace

std::vector<Change> nearest_changes(const Scenario& scenario, const Layout& layout,
                                    const Prediction& prediction, Rank worst) {
  const std::vector<bool> modules = concerned(layout, prediction.program, worst);
  const auto first =
      static_cast<std::size_t>(std::find(modules.begin(), modules.end(), true) - modules.begin());
  std::vector<Change> changes;
  for (const Step& step : kSteps) {
    Change change{"", changed(layout, step, modules)};
    if (change.layout == layout || check_layout(scenario, change.layout)) continue;
    const bool known = std::any_of(changes.begin(), changes.end(), [&](const Change& before) {
      return before.layout == change.layout;
    });
    if (known) continue;
    change.what = words(layout, change.layout, step, first);
    if (layout.placement != Placement::homogeneous && layout.modules.size() > 1) {
      std::string names;
      for (std::size_t m = 0; m < modules.size(); ++m)
        if (modules[m] && scenario.model.modules[m].kind != ModuleKind::projector)
          names += (names.empty() ? "" : " and ") + scenario.model.modules[m].name;
      change.what = names + ": " + change.what;
    }
    changes.push_back(std::move(change));
  }
  return changes;
}

Fitting find_fitting(const Scenario& scenario, const Layout& layout, const Prediction& prediction,
                     Rank worst, const HardwareProfile& profile) {
  Fitting result;
  for (Change& change : nearest_changes(scenario, layout, prediction, worst)) {
    const std::optional<Figures> quick = quick_figures(scenario, change.layout, profile);
    if (!quick) continue;
    ++result.tried;
    if (!quick->fits() && result.memory.value > 0 && quick->needed_memory() >= result.memory)
      continue;
    result.memory = quick->needed_memory();
    result.step = quick->step;
    result.smallest = change.what;
    if (!quick->fits()) continue;
    result.fits = std::move(change);
    break;
  }
  return result;
}

std::string out_of_memory_text(const Scenario& scenario, const Layout& layout,
                               const Prediction& prediction, const HardwareProfile& profile) {
  const Figures found = figures(scenario, prediction);
  std::string text = "out of memory: " + found.worst_stage + " needs " +
                     bytes_text(found.needed_memory()) + " of " + bytes_text(found.device_memory) +
                     " (" + holdings(prediction.memory[found.worst_rank.value]) + "); ";
  const Fitting fitting = find_fitting(scenario, layout, prediction, found.worst_rank, profile);
  if (fitting.fits)
    return text + "fits: " + fitting.fits->what + " (" + bytes_text(fitting.memory) + ", step " +
           seconds_text(fitting.step) + ")";
  if (fitting.tried == 0) return text + "no similar layout is legal";
  const std::string fails =
      fitting.tried == 1
          ? "the only similar layout that is legal does not fit either: "
          : "none of " + std::to_string(fitting.tried) + " similar layouts fits; the smallest, ";
  return text + fails + fitting.smallest + (fitting.tried == 1 ? " needs " : ", needs ") +
         bytes_text(fitting.memory) + ": use more ranks, or a smaller model or sequence";
}

}  // namespace polyphony::sim
