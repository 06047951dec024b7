#include "sim/prediction/predict.h"

#include <algorithm>

#include "shared/chance/misses.h"
#include "shared/cost/cost_model.h"
#include "shared/cost/degraded.h"
#include "shared/cost/paced_costs.h"
#include "shared/graph/library_memory.h"
#include "shared/hardware/devices.h"
#include "shared/lower/fold.h"
#include "shared/lower/lower.h"
#include "sim/runner/simulate.h"

namespace polyphony::sim {
namespace {

thread_local std::uint64_t lowered = 0;

// Applies what the profile knows of measured steps like this one. Emulated compute lasts as long as
// its own profile says, whatever was measured elsewhere.
void correct(const Scenario& scenario, const HardwareProfile& profile, Prediction& result) {
  const Misses misses(profile.certainty, scenario);
  if (misses.any()) scale_times(result.costs, misses.factor(result.program.layout));
}

void estimate_into(Prediction& result) {
  result.estimate = estimate(result.program, result.compiled, result.costs);
  result.timeline = result.estimate.timeline;
  result.timeline.makespan = result.estimate.step();
  result.simulated = false;
}

// Sets what is derived from the Timeline.
void finish(const Scenario& scenario, const HardwareProfile& profile, Prediction& result) {
  result.peak = peak(profile.device, scenario.training.precision);
  result.memory = predict_needed_memory(result.program, result.timeline, scenario.cluster, profile);
}

// Compiles the Program and computes its costs.
std::variant<Prediction, Infeasible> priced(Program program, const Scenario& scenario,
                                            const HardwareProfile& profile) {
  Prediction result;
  result.program = std::move(program);
  if (const auto no = check_links(result.program, scenario.cluster)) return *no;
  auto compiled = compile(result.program);
  if (const Fault* fault = std::get_if<Fault>(&compiled)) {
    if (!result.program.layout.actions.empty())
      throw InputError(
          scenario.file, "/layout/actions", "these actions cannot run: " + fault->text,
          "`polyphony schedules` draws an order; encoders on their own ranks follow the order of "
          "the language module's first stage");
    POLYPHONY_CHECK(false, "lowering made a Program that cannot run: " << fault->text);
  }
  result.compiled = std::move(std::get<Compiled>(compiled));
  result.costs = price(result.program, result.compiled, scenario.cluster, profile);
  return result;
}

// Lowers the plan, which may be a folded one. The split into stages is stated in the layout, as in
// a run, so that the Program and its traces are the same as those of a run.
std::variant<Prediction, Infeasible> prepare(const PlannedLayout& planned, const Plan& plan,
                                             const Batch& batch) {
  ++lowered;
  return priced(lower(planned.scenario(), with_blocks(planned.layout, plan), plan, batch,
                      StepKind::train, planned.profile().stack),
                planned.scenario(), planned.profile());
}

// Adds the estimate, the simulation if requested, and what is derived from them.
std::variant<Prediction, Infeasible> played(std::variant<Prediction, Infeasible> prepared,
                                            const Scenario& scenario,
                                            const HardwareProfile& profile, Predictor predictor,
                                            const std::optional<PaceModel>& pace) {
  if (std::holds_alternative<Infeasible>(prepared)) return prepared;
  Prediction& result = std::get<Prediction>(prepared);
  if (pace)
    apply_pace(result.program, result.compiled, scenario.cluster, *pace, result.costs);
  else
    correct(scenario, profile, result);
  estimate_into(result);
  if (predictor == Predictor::simulate) {
    auto timeline = simulate(result.program, result.compiled, result.costs);
    if (const auto* no = std::get_if<Infeasible>(&timeline)) return *no;
    result.timeline = std::move(std::get<Timeline>(timeline));
    result.simulated = true;
  }
  finish(scenario, profile, result);
  return prepared;
}

}  // namespace

std::uint64_t programs_lowered() { return lowered; }

std::variant<Prediction, Infeasible> predict_folded(const PlannedLayout& planned, Lanes lanes) {
  auto folded =
      fold(planned.scenario(), planned.layout, planned.plan, planned.inputs->typical(), lanes);
  if (const auto* no = std::get_if<Infeasible>(&folded)) return *no;
  const Folded& kept = std::get<Folded>(folded);
  auto prepared = prepare(planned, kept.plan, kept.batch);
  if (const auto* no = std::get_if<Infeasible>(&prepared)) return *no;
  Prediction& result = std::get<Prediction>(prepared);
  result.lanes = kept.plan.alike;
  result.folded = true;
  correct(planned.scenario(), planned.profile(), result);
  estimate_into(result);
  finish(planned.scenario(), planned.profile(), result);
  return prepared;
}

std::variant<Prediction, Infeasible> predict_folded(const Scenario& scenario, const Layout& layout,
                                                    const HardwareProfile& profile) {
  return predict_folded(plan_layout(borrow_inputs(scenario, profile), layout));
}

std::variant<Prediction, Infeasible> predict(const PlannedLayout& planned, const Batch& batch,
                                             Predictor predictor,
                                             const std::optional<PaceModel>& pace) {
  return played(prepare(planned, planned.plan, batch), planned.scenario(), planned.profile(),
                predictor, pace);
}

std::variant<Prediction, Infeasible> predict(const Scenario& scenario, const Layout& layout,
                                             const Batch& batch, const HardwareProfile& profile,
                                             Predictor predictor,
                                             const std::optional<PaceModel>& pace) {
  return predict(plan_layout(borrow_inputs(scenario, profile), layout), batch, predictor, pace);
}

std::variant<Prediction, Infeasible> predict(Program program, const Scenario& scenario,
                                             const HardwareProfile& profile, Predictor predictor,
                                             const std::optional<PaceModel>& pace) {
  return played(priced(std::move(program), scenario, profile), scenario, profile, predictor, pace);
}

}  // namespace polyphony::sim
