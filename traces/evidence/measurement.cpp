#include "traces/evidence/measurement.h"

#include "shared/error.h"
#include "shared/plan/lower.h"
#include "shared/plan/step_record.h"
#include "traces/format/chrome_json.h"

namespace polyphony::traces {

std::string Measurement::layout() const { return describe(scenario.model, *scenario.layout); }

namespace {

// Programs of the steps of one run.
class StepPrograms {
 public:
  StepPrograms(const Scenario& scenario, const Files& files)
      : scenario_(scenario),
        files_(files),
        layout_(*scenario.layout),
        plain_(without_planner(layout_)),
        plan_(make_plan(scenario, layout_)),
        plain_plan_(make_plan(scenario, plain_)) {}

  bool late(const TracedStep& step) const {
    return layout_.planner != Planning::none && !step.files.empty() &&
           read_trace_info(files_.load(step.files.front()), step.files.front()).late_plan;
  }
  Program of(const TracedStep& step, bool late) const {
    if (late) return lower(scenario_, plain_, plain_plan_, step.batch);
    if (!step.plan) return lower(scenario_, layout_, plan_, step.batch);
    const auto faults = check_step(scenario_.model, plan_, *step.plan, step.batch);
    if (!faults.empty())
      throw InputError("step " + std::to_string(step.step), "",
                       "its plan is not of this layout: " + faults.front(),
                       "give the folder as the run left it");
    return lower(scenario_, layout_, plan_, *step.plan, step.batch);
  }

 private:
  const Scenario& scenario_;
  const Files& files_;
  const Layout layout_, plain_;
  const Plan plan_, plain_plan_;
};

}  // namespace

void read_steps(const std::vector<TracedStep>& steps, const Files& files, Measurement& into) {
  POLYPHONY_CHECK(!steps.empty(), "no step to read");
  const StepPrograms programs(into.scenario, files);
  std::vector<bool> late;
  for (const TracedStep& step : steps) late.push_back(programs.late(step));
  // The middle one; of those that were planned in time, if any were.
  std::vector<std::size_t> typical;
  for (std::size_t s = 0; s < steps.size(); ++s)
    if (!late[s]) typical.push_back(s);
  const std::size_t middle = typical.empty() ? steps.size() / 2 : typical[typical.size() / 2];
  into.program = programs.of(steps[middle], late[middle]);
  for (std::size_t s = 0; s < steps.size(); ++s) {
    const TracedStep& step = steps[s];
    Program program = programs.of(step, late[s]);
    if (late[s] != late[middle] || program.ops.size() != into.program.ops.size()) continue;
    std::vector<Trace> parts;
    for (const std::string& file : step.files) {
      parts.push_back(read_trace(files.load(file), file, program));
      if (parts.back().info.kind != TraceKind::measured)
        throw InputError(file, "/polyphony/kind", "is a prediction, nothing that was measured",
                         "give what `polyphony run --trace-steps` recorded");
    }
    into.steps.push_back(merge(program, parts, step.files));
    into.step_programs.push_back(std::move(program));
  }
}

}  // namespace polyphony::traces
