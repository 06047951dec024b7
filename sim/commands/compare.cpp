// polyphony compare: recorded runs beside their predictions.
#include <iostream>

#include "sim/answer_json/answers_json.h"
#include "sim/cli/command.h"
#include "sim/cli/measurements.h"
#include "sim/shown/comparison_table.h"

namespace polyphony::sim {

int compare_command(int argc, char** argv) {
  Arguments args("compare",
                 "Predicted beside measured: step time and its parts, for recorded runs.", "RUN...",
                 "  polyphony run scenario.json --out runs/a --steps 20 --trace-steps 8:20\n  "
                 "polyphony compare runs/a --profile machine.json\n  polyphony compare "
                 "runs/a/trace/step-9.rank-*.json --scenario scenario.json     one step alone");
  add_measurement_options(args);
  args.add_profile();
  args.add()("bar",
             "a step counts as predicted within this share, or twice the repeatability; repeats "
             "that differ by more than the share cannot tell",
             cxxopts::value<double>()->default_value("0.1"));
  if (args.parse(argc, argv)) return 0;
  if (!args.has("runs"))
    throw InputError("polyphony compare", "", "needs at least one RUN",
                     "polyphony compare --help shows an example");
  std::vector<RunComparison> rows;
  for (const traces::Measurement& measured : read_measurements(args))
    rows.push_back(compare_run(measured, load_profile(measured.scenario, args.profile())));
  if (args.json())
    std::cout << to_json(rows, args.real("bar")).dump(2) << "\n";
  else
    std::cout << comparison_text(rows, args.real("bar"));
  return 0;
}

}  // namespace polyphony::sim
