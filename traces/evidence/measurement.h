// What was measured of a layout's training step, wherever it came from: the one value that
// comparison and calibration read. Doors: run_folder.h (what `polyphony run` leaves), trace_files.h
// (trace files and the scenario they are of).
//   Sizes differ from step to step with the data; so do ops where work items are empty, and their order
//   where a planner makes one for every batch.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "shared/hardware/pace.h"
#include "shared/program/program.h"
#include "shared/program/timeline.h"
#include "shared/scenario_io/scenario_json.h"
#include "shared/step/step_plan.h"
#include "traces/format/op_journal.h"

namespace polyphony::traces {

struct Measurement {
  std::string source;  // the folder or file, for tables and messages
  std::string scenario_file;
  Scenario scenario;                   // has a legal layout
  std::vector<Timeline> steps;         // complete, of all ranks
  std::vector<Program> step_programs;  // by step
  std::size_t middle = 0;              // the step that stands for all where one has to
  std::optional<PaceModel> pace;       // compute ops were stretched
  Seconds clock_error{};               // times of two ranks may be so much apart that are one
  std::string note;                    // what it is not: a killed run's; empty: nothing to say
  const Program& program() const { return step_programs[middle]; }
  std::string layout() const;  // in words
};

// How a door reaches files: this library opens none.
struct Files {
  LoadText load;
  std::function<bool(const std::string& path)> exists;
  // The samples of a scenario's data set (shared/program/data_set.h); asked for only where stages
  // have to be split anew.
  std::function<void(Scenario& scenario)> read_samples;
};

// What a rank's journal holds of a step, on rank 0's clock.
struct RecordedPart {
  Rank rank;
  JournalStep ops;
  Seconds clock_error{};
  std::string file;
};

// One traced step: its batch, and the files (of one rank, or of several) that hold its ops; of a killed
// run the ranks' records.
struct TracedStep {
  std::uint64_t step = 0;
  Batch batch;
  std::vector<std::string> files;
  std::optional<StepPlan> plan =
      {};  // as it was made while the run trained; none: the layout's own
  std::vector<RecordedPart> recorded = {};
};
// Lowers every step's batch, reads its files and puts them together: what all doors end with. A step
// whose live plan came too late is left out where the middle one's did not. Missing, truncated or
// foreign files: InputError naming the file.
void read_steps(const std::vector<TracedStep>& steps, const Files& files, Measurement& into);

}  // namespace polyphony::traces
