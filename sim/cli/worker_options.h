// What `run` and `rehearse` share: options that are passed on to polyphony-worker, the run's
// folder, progress from its metrics.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "shared/files/run_folder.h"
#include "sim/cli/command.h"
#include "sim/launching/launch.h"

namespace polyphony::sim {

// The last training step and accuracy written to <folder>/metrics.jsonl; reads only what was
// appended since the last call.
class MetricsTail {
 public:
  explicit MetricsTail(const std::string& folder) : path_(RunPaths{folder}.metrics()) {}
  void update();
  std::int64_t step = -1;
  double loss = 0, samples_per_second = 0, accuracy = -1;
  std::vector<Seconds> recent{};  // times of up to kRecent steps, the newest last
  static constexpr std::size_t kRecent = 20;

 private:
  std::string path_, rest_;
  std::streamoff read_ = 0;
};

// Options for when a layout's planner plans, and the worker's arguments for them.
void add_planning_options(Arguments& args);
void add_planning_arguments(const Arguments& args, std::vector<std::string>& worker);

// Appends those of the options that were given, with their values, to the worker's arguments.
void pass_on(const Arguments& args, std::initializer_list<const char*> options,
             std::vector<std::string>& worker);

// Options for steps with spikes and non-finite values, and the worker's arguments for them.
void add_bad_step_options(Arguments& args);
void add_bad_step_arguments(const Arguments& args, std::vector<std::string>& worker);

// Writes the scenario with `layout` into the claimed folder, for the ranks to read, and returns its
// path. If the layout does not split layers into stages, they are split here, as the profile
// balances them or as in the run that is continued, so that no rank and no later start splits them
// differently.
std::string give_scenario(const Scenario& scenario, const Layout& layout,
                          const HardwareProfile& profile, const RunFolder& claim);
// Launches the ranks and shows progress over `steps`. `predicted`: the time of a step, shown beside
// the measured one; a line on stderr says once if the two part.
LaunchResult launch_with_progress(const LaunchOptions& options, const std::string& label,
                                  const std::string& folder, std::int64_t steps,
                                  const std::optional<Seconds>& predicted = {});

}  // namespace polyphony::sim
