// The measured training steps of a layout. Comparison and calibration read this value only,
// regardless of where the measurement came from: the folder of a run (run_folder.h), or trace files
// and the scenario that was run (trace_files.h).
//
// Sizes differ from step to step with the data. The ops differ where a microbatch is empty, and
// their order differs if a planner computes a new order for every batch.
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
  std::size_t middle = 0;              // the representative step
  std::optional<PaceModel> pace;       // emulated compute: compute ops were stretched
  Seconds clock_error{};               // clocks of two ranks may differ by this much
  std::string note;                    // a limitation, e.g. that the run was killed; may be empty
  const Program& program() const { return step_programs[middle]; }
  std::string layout() const;  // the layout as text
};

// Access to files, given by the caller: this library opens no files.
struct Files {
  LoadText load;
  std::function<bool(const std::string& path)> exists;
  // Reads the samples of a scenario's data set (shared/scenario_io/data_set.h). Called only if
  // stages have to be split again.
  std::function<void(Scenario& scenario)> read_samples;
};

// A rank's record of a step, from its journal, on rank 0's clock.
struct RecordedPart {
  Rank rank;
  JournalStep ops;
  Seconds clock_error{};
  std::string file;
};

// One traced step: its batch, and the files that hold its ops (each file holds one or several
// ranks). For a killed run: the records of the ranks' journals.
struct TracedStep {
  std::uint64_t step = 0;
  Batch batch;
  std::vector<std::string> files;
  std::optional<StepPlan> plan =
      {};  // the plan computed during training; absent: the plan follows from the layout
  std::vector<RecordedPart> recorded = {};
};
// Lowers the batch of every step, reads and merges its files, and stores the steps in `into`. All
// readers of measurements end with this call. A step whose live plan came too late is omitted if
// that of the middle step was in time. Throws InputError with the file if a file is missing,
// truncated or belongs to another Program.
void read_steps(const std::vector<TracedStep>& steps, const Files& files, Measurement& into);

}  // namespace polyphony::traces
