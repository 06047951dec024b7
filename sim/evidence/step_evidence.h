// Evidence from a run elsewhere, in a number or two: the time of its step and the memory it used.
// It is read from a framework's log (traces/import/framework_log.h) or from an evidence file:
//   {"evidence": 1, "about": "…", "runs": [
//     {"scenario": "today.json", "step_time": "12.3s", "noise": 0.02, "memory": "61.2GiB",
//      "source": "run of May"},
//     {"scenario": "today.json", "log": "slurm-123.out"}]}
//   scenario     with the layout that was run; paths are relative to the evidence file
//   noise        relative deviation of the step time; 0.01 if not given
//   memory       the peak of allocated memory on any device; "reserved": of the allocator's pool
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

// Returns tokens and samples of the scenario's step, and ranks: what converts a log's rates into
// times.
traces::StepWork work_of(const Scenario& scenario, const HardwareProfile& profile);
// Reads the evidence of a log. Throws InputError if the batches of log and scenario differ, or if
// the log yields no step time.
StepEvidence evidence_of_log(const traces::FrameworkLog& log, const Scenario& scenario,
                             const HardwareProfile& profile, const std::string& file);

// One entry of an evidence file.
struct EvidenceEntry {
  std::string scenario, log, source;  // paths as written
  std::optional<Seconds> step;
  std::optional<double> noise;
  std::optional<Bytes> memory, reserved;
};
// Returns whether a JSON text is an evidence file.
bool is_evidence(const std::string& text, const std::string& file);
std::vector<EvidenceEntry> read_evidence(const std::string& text, const std::string& file);

}  // namespace polyphony::sim
