#include "traces/evidence/measurement.h"

#include <algorithm>

#include "shared/error.h"
#include "shared/lower/lower.h"
#include "shared/step/step_plan.h"
#include "shared/step/step_record.h"
#include "traces/evidence/step_file.h"

namespace polyphony::traces {

std::string Measurement::layout() const { return describe(scenario.model, *scenario.layout); }

namespace {

// Lowers the Programs of the steps of one run.
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
    if (layout_.planner == Planning::none) return false;
    if (!step.recorded.empty()) return step.recorded.front().ops.late_plan;
    return !step.files.empty() &&
           read_step_file_head(files_.load(step.files.front()), step.files.front()).late_plan;
  }
  Program of(const TracedStep& step, bool late) const {
    if (late) return planned(plain_, plain_plan_, step);
    if (!step.plan) return planned(layout_, plan_, step);
    const auto faults = check_step(scenario_.model, plan_, *step.plan, step.batch);
    if (!faults.empty())
      throw InputError("step " + std::to_string(step.step), "",
                       "its plan does not match the layout: " + faults.front(),
                       "give the unchanged folder of the run");
    return lower(scenario_, layout_, plan_, *step.plan, step.batch);
  }

 private:
  Program planned(const Layout& layout, const Plan& plan, const TracedStep& step) const {
    const StepPlan made = make_step_plan(scenario_, layout, plan, step.batch);
    for (const RecordedPart& part : step.recorded)
      if (part.ops.plan != digest(made, step.batch))
        throw InputError(
            part.file, "",
            "step " + std::to_string(step.step) +
                " was recorded with a plan that differs from that of this scenario, "
                "layout and batch",
            "keep it in the folder with scenario.json and batches.jsonl of its own run");
    return lower(scenario_, layout, plan, made, step.batch);
  }

  const Scenario& scenario_;
  const Files& files_;
  const Layout layout_, plain_;
  const Plan plan_, plain_plan_;
};

// Converts op ids of the rank's Program to those of the Program of all ranks.
Trace trace_of(const RecordedPart& part, const Program& program) {
  const Range own = program.ops_of(part.rank);
  Trace trace;
  trace.info.kind = TraceKind::measured;
  trace.info.step = part.ops.step;
  trace.info.ranks = program.ranks;
  trace.info.rank = part.rank;
  trace.info.clock = ClockNote{{}, part.clock_error, 0};
  trace.timeline.ops = part.ops.ops;
  for (OpTime& time : trace.timeline.ops) {
    if (time.op.value >= own.size())
      throw InputError(part.file, "",
                       "op " + std::to_string(time.op.value) + " of step " +
                           std::to_string(part.ops.step) + " does not exist: the rank has " +
                           std::to_string(own.size()),
                       "keep it in the folder with scenario.json and batches.jsonl of its own run");
    time.op = OpId(time.op.value + own.begin);
  }
  return trace;
}

}  // namespace

void read_steps(const std::vector<TracedStep>& steps, const Files& files, Measurement& into) {
  POLYPHONY_CHECK(!steps.empty(), "no step to read");
  const StepPrograms programs(into.scenario, files);
  std::vector<bool> late;
  for (const TracedStep& step : steps) late.push_back(programs.late(step));
  // The middle step among those that were planned in time, if there are any.
  std::vector<std::size_t> typical;
  for (std::size_t s = 0; s < steps.size(); ++s)
    if (!late[s]) typical.push_back(s);
  const std::size_t middle = typical.empty() ? steps.size() / 2 : typical[typical.size() / 2];
  for (std::size_t s = 0; s < steps.size(); ++s) {
    const TracedStep& step = steps[s];
    if (late[s] != late[middle]) continue;
    if (s == middle) into.middle = into.steps.size();
    Program program = programs.of(step, late[s]);
    std::vector<Trace> parts;
    StepFiles step_files(program);
    std::vector<std::string> sources = step.files;
    for (const std::string& file : step.files) {
      parts.push_back(step_files.read(files.load(file), file));
      if (parts.back().info.kind != TraceKind::measured)
        throw InputError(file, "/polyphony/kind", "is a prediction, not a measurement",
                         "give traces recorded by `polyphony run --trace-steps`");
    }
    for (const RecordedPart& part : step.recorded) {
      parts.push_back(trace_of(part, program));
      sources.push_back(part.file);
    }
    for (const Trace& part : parts)
      if (part.info.clock) into.clock_error = std::max(into.clock_error, part.info.clock->error);
    into.steps.push_back(merge(program, parts, sources));
    into.step_programs.push_back(std::move(program));
  }
}

}  // namespace polyphony::traces
