// What a run elsewhere says of itself in a number or two: how long its step lasts, how much memory it
// took. From a framework's log (traces/import/framework_log.h), or as somebody wrote it down.
//   {"evidence": 1, "about": "…", "runs": [
//     {"scenario": "today.json", "step_time": "12.3s", "noise": 0.02, "memory": "61.2GiB",
//      "source": "run of May"},
//     {"scenario": "today.json", "log": "slurm-123.out"}]}
//   scenario     with the layout that was run; paths are relative to the file
//   noise        relative deviation of the step time; 0.01 where nothing is said
//   memory       the most that was allocated on any device; "reserved": the allocator's pool
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shared/hardware/hardware.h"
#include "shared/scenario/scenario.h"
#include "traces/evidence/steady_steps.h"

namespace polyphony::sim {

struct StepEvidence {
  std::string source;
  Scenario scenario;  // has a legal layout
  std::optional<Seconds> step;
  double noise = traces::kLeastNoise;  // relative
  std::optional<Bytes> memory, reserved;
  std::vector<std::string> notes;
};

// Tokens and samples of the scenario's step, ranks: what actions a log's rates into times.
traces::StepWork work_of(const Scenario& scenario, const HardwareProfile& profile);
// InputError: batches of the log and of the scenario differ; no step time can be said.
StepEvidence evidence_of_log(const traces::FrameworkLog& log, const Scenario& scenario,
                             const HardwareProfile& profile, const std::string& file);

// A line of an evidence file.
struct EvidenceEntry {
  std::string scenario, log, source;  // paths as written
  std::optional<Seconds> step;
  std::optional<double> noise;
  std::optional<Bytes> memory, reserved;
};
bool is_evidence(const std::string& text, const std::string& file);
std::vector<EvidenceEntry> read_evidence(const std::string& text, const std::string& file);

}  // namespace polyphony::sim
