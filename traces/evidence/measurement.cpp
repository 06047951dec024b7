#include "traces/evidence/measurement.h"

#include "shared/error.h"
#include "shared/plan/lower.h"
#include "traces/format/chrome_json.h"

namespace polyphony::traces {

std::string Measurement::layout() const { return describe(scenario.model, *scenario.layout); }

void read_steps(const std::vector<TracedStep>& steps, const Files& files, Measurement& into) {
  POLYPHONY_CHECK(!steps.empty(), "no step to read");
  const Layout& layout = *into.scenario.layout;
  const Plan plan = make_plan(into.scenario, layout);
  into.program = lower(into.scenario, layout, plan, steps[steps.size() / 2].batch);
  for (const TracedStep& step : steps) {
    Program program = lower(into.scenario, layout, plan, step.batch);
    if (program.ops.size() != into.program.ops.size()) continue;
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
