// Not a test: scripts/bench_data runs this.
//   data_bench SCENARIO STEPS SECONDS
// Opens the scenario's data set once, then packs the batches of steps 0 to STEPS on every rank of
// its layout, each rank in a thread, by the loader that training uses. Nothing is computed: a rank
// sleeps for SECONDS, and then takes the next step.
// Prints one JSON object: seconds and processor seconds to open (index, tokens) and to pack, the
// number of samples packed, and how long each step waited on the rank that waited longest.
#include <sys/resource.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <thread>

#include "exec/planning/step_data.h"
#include "exec/system/process.h"
#include "exec/transport/in_process.h"
#include "shared/error.h"
#include "shared/files/whole.h"
#include "shared/scenario_io/scenario_json.h"
#include "shared/split/planned_layout.h"

namespace polyphony::exec {
namespace {

struct Spent {
  Seconds wall{}, processor{};
  Spent operator-(const Spent& begin) const {
    return {wall - begin.wall, processor - begin.processor};
  }
};

Spent now() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return Seconds(static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec));
  };
  return {steady_now(), seconds(usage.ru_utime) + seconds(usage.ru_stime)};
}

nlohmann::json run(const std::string& file, std::size_t steps, Seconds pause) {
  Scenario scenario = read_scenario(read_file(file), file, read_file, {}, "");
  const Spent begin = now();
  const std::unique_ptr<Dataset> dataset = open_dataset(scenario, "");
  const Spent opened = now() - begin;
  scenario.data.samples = dataset->training();
  const Layout& layout = *scenario.layout;
  const Plan plan = make_plan(scenario, layout);
  std::vector<std::vector<double>> waits(static_cast<std::size_t>(world_size(layout)));
  const Spent ready = now();
  run_in_process(world_size(layout), [&](Transport& transport) {
    const StepPlanner planner(transport, scenario, layout, plan, *dataset, Planner::each);
    StepLoader loader(planner, *dataset, scenario.data.seed, transport.rank(), torch::kCPU);
    std::vector<double>& own = waits[transport.rank().value];
    for (std::size_t step = 0; step < steps; ++step) {
      const Seconds asked = steady_now();
      const StepData data = loader.take(step);
      own.push_back((steady_now() - asked).count());
      if (pause.count() > 0) std::this_thread::sleep_for(pause);
    }
    loader.finish();
  });
  const Spent packed = now() - ready;
  std::vector<double> longest(steps);
  for (const std::vector<double>& own : waits)
    for (std::size_t step = 0; step < steps; ++step)
      longest[step] = std::max(longest[step], own[step]);
  // The loader has also packed the step after the last one.
  return {{"samples", (steps + 1) * static_cast<std::size_t>(scenario.data.global_batch)},
          {"waits", longest},
          {"data_set", scenario.data.samples.size()},
          {"open_seconds", opened.wall.count()},
          {"open_processor_seconds", opened.processor.count()},
          {"pack_seconds", packed.wall.count()},
          {"pack_processor_seconds", packed.processor.count()}};
}

}  // namespace
}  // namespace polyphony::exec

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: data_bench SCENARIO STEPS SECONDS\n";
    return 2;
  }
  try {
    std::cout << polyphony::exec::run(argv[1], std::stoull(argv[2]),
                                      polyphony::Seconds(std::stod(argv[3])))
              << "\n";
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 2;
  }
}
