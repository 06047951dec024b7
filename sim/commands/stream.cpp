#include "sim/commands/stream.h"

#include <algorithm>
#include <iostream>

#include "sim/answer_json/answers_json.h"
#include "sim/console/console.h"
#include "sim/shown/headline.h"
#include "sim/shown/stream_text.h"
#include "sim/text/layout_words.h"

namespace polyphony::sim {

void add_stream_options(Arguments& args) {
  args.add()(
      "batches",
      "predict so many batches of the data: percentiles of step, idle time and memory, how often a "
      "batch does not fit, and which samples take the memory",
      cxxopts::value<int>()->default_value("0"))(
      "steps", "with --batches: steps of the run whose risk is printed; default: training.steps",
      cxxopts::value<int>());
}

int answer_stream(const Arguments& args, const Scenario& scenario, const Layout& layout,
                  const HardwareProfile& profile) {
  if (args.integer("batches") < 1)
    throw InputError("--batches", "",
                     "must be at least 1 (got " + std::to_string(args.integer("batches")) + ")",
                     "a number such as 1000");
  const int steps = args.has("steps") && args.integer("steps") > 0 ? args.integer("steps")
                                                                   : scenario.training.steps;
  StreamOptions options;
  options.batches = static_cast<std::size_t>(args.integer("batches"));
  options.jobs = args.jobs();
  const auto copies =
      std::min(options.batches, static_cast<std::size_t>(std::max(1, options.jobs)));
  require_memory(scenario, layout,
                 {.predictor = options.predictor, .copies = static_cast<int>(copies)});
  BatchStream stream;
  {
    Progress progress("batches");
    options.progress = [&](double share) { progress.show(share); };
    stream = predict_stream(scenario, layout, profile, options);
  }
  if (stream.batches.empty())
    throw NoAnswer(ExitCode::infeasible, scenario.file, "",
                   stream.failed.empty() ? "?" : stream.failed.front());
  const StreamBatch& worst = stream.worst();
  if (args.json()) {
    std::cout << to_json(stream, steps).dump(2) << "\n";
  } else {
    std::cout << headline(scenario, profile)
              << paragraph(layout_words(scenario.model, layout, scenario.cluster)) << "\n"
              << stream_text(stream, profile, steps);
  }
  for (const std::string& failure : stream.failed) std::cerr << failure << "\n";
  return static_cast<int>(stream.peak(worst) > stream.device ? ExitCode::infeasible : ExitCode::ok);
}

}  // namespace polyphony::sim
