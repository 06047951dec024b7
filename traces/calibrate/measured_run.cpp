#include <tuple>

#include "traces/calibrate/calibrate.h"

namespace polyphony::traces {
namespace {

// Returns true if the Programs have the same ops, except for their sizes.
bool same_ops(const Program& one, const Program& other) {
  if (one.ops.size() != other.ops.size()) return false;
  for (std::size_t op = 0; op < one.ops.size(); ++op) {
    const Op &a = one.ops[op], &b = other.ops[op];
    if (a.stream != b.stream || a.what.index() != b.what.index()) return false;
    const auto *x = std::get_if<Compute>(&a.what), *y = std::get_if<Compute>(&b.what);
    if (x == nullptr) continue;
    const auto what = [](const Program& program, const Compute& compute) {
      const Work& work = program.works[compute.work.value];
      return std::tuple(compute.module, compute.layers, compute.phase, compute.recipe, work.branch,
                        work.lane, work.context, work.index);
    };
    if (what(one, *x) != what(other, *y)) return false;
  }
  return true;
}

}  // namespace

MeasuredRun measured_run(const Measurement& measurement) {
  MeasuredRun run{measurement.layout(), &measurement.program(), measurement.scenario.cluster, {}};
  for (std::size_t s = 0; s < measurement.steps.size(); ++s) {
    if (!same_ops(measurement.step_programs[s], measurement.program())) continue;
    run.steps.push_back(measurement.steps[s]);
    run.step_programs.push_back(&measurement.step_programs[s]);
  }
  return run;
}

}  // namespace polyphony::traces
