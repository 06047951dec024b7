// polyphony compare: recorded runs beside their predictions.
#include <iostream>

#include "sim/answers/comparison.h"
#include "sim/commands/command.h"

namespace polyphony::sim {

int compare_command(int argc, char** argv) {
  Arguments args("compare",
                 "Predicted beside measured: step time and its parts, for recorded runs.", "RUN...",
                 "  polyphony run scenario.json --out runs/a --steps 20 --trace-steps 8:20\n  "
                 "polyphony compare runs/a --profile machine.json");
  args.add()("runs", "folders of `polyphony run --trace-steps`",
             cxxopts::value<std::vector<std::string>>())(
      "bar", "a step counts as predicted within this share, or twice the repeatability",
      cxxopts::value<double>()->default_value("0.1"));
  args.add_profile();
  args.positional({"runs"});
  if (args.parse(argc, argv)) return 0;
  if (!args.has("runs"))
    throw InputError("polyphony compare", "", "needs at least one RUN",
                     "polyphony compare --help shows an example");
  std::vector<RunComparison> rows;
  for (const std::string& folder : args.texts("runs")) {
    const RecordedRun run = load_recorded(folder);
    rows.push_back(compare_run(run, load_profile(run.scenario, args.profile())));
  }
  if (args.json())
    std::cout << comparison_json(rows, args.real("bar")).dump(2) << "\n";
  else
    std::cout << comparison_text(rows, args.real("bar"));
  return 0;
}

}  // namespace polyphony::sim
