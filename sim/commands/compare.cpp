// polyphony compare: prints recorded runs against their predictions.
#include <iostream>

#include "shared/program/work.h"
#include "sim/answer_json/answers_json.h"
#include "sim/cli/command.h"
#include "sim/cli/measurements.h"
#include "sim/shown/headline.h"
#include "sim/shown_runs/comparison_table.h"

namespace polyphony::sim {
namespace {

// Language tokens of a mean sample of the compared step.
double mean_tokens(const traces::Measurement& measured) {
  const Program& program = measured.step_programs[measured.middle];
  double sum = 0;
  for (const Sample& sample : program.batch.samples)
    sum += static_cast<double>(language_rows(program.model, sample));
  const std::size_t samples = program.batch.samples.size();
  return samples > 0 ? sum / static_cast<double>(samples) : 0;
}

}  // namespace

int compare_command(int argc, char** argv) {
  Arguments args("compare",
                 "Compares recorded runs with their predictions: step time and its parts.",
                 "RUN...",
                 "  polyphony run scenario.json --out runs/a --steps 20 --trace-steps 8:20\n  "
                 "polyphony compare runs/a --profile machine.json\n  polyphony compare "
                 "runs/a/trace/step-9.rank-*.json --scenario scenario.json     one step alone");
  add_measurement_options(args);
  args.add_profile();
  add_bar(args);
  if (args.parse(argc, argv)) return 0;
  if (!args.has("runs"))
    throw InputError("polyphony compare", "", "needs at least one RUN",
                     "polyphony compare --help shows an example");
  std::vector<RunComparison> rows;
  for (const traces::Measurement& measured : read_measurements(args)) {
    const HardwareProfile profile = load_profile(measured.scenario, args.profile());
    rows.push_back(compare_run(measured, profile));
    rows.back().question = headline(measured.scenario, profile, mean_tokens(measured));
  }
  if (args.json())
    std::cout << to_json(rows, args.real("bar")).dump(2) << "\n";
  else
    std::cout << comparison_text(rows, args.real("bar"));
  return 0;
}

}  // namespace polyphony::sim
