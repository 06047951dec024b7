// Evidence from a run elsewhere: the time of its step, the memory it used, times of its kernels.
// It is read from a framework's log (traces/import/framework_log.h), from profiles of its GPUs
// (traces/evidence/device_evidence.h), or from an evidence file:
//   {"evidence": 1, "about": "…", "runs": [
//     {"scenario": "today.json", "step_time": "12.3s", "noise": 0.02, "memory": "61.2GiB",
//      "source": "run of May"},
//     {"scenario": "today.json", "log": "slurm-123.out"},
//     {"scenario": "today.json", "profiles": ["rank-0.json.gz", "rank-8.json.gz"]}]}
//   scenario     with the layout that was run; paths are relative to the evidence file
//   noise        relative deviation of the step time; 0.01 if not given
//   memory       the peak of allocated memory on any device; "reserved": of the allocator's pool
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shared/hardware/hardware.h"
#include "shared/scenario/scenario.h"
#include "traces/evidence/device_evidence.h"
#include "traces/evidence/steady_steps.h"

namespace polyphony::sim {

struct StepEvidence {
  std::string source;
  Scenario scenario;  // has a legal layout
  std::optional<Seconds> step;
  double noise = traces::kLeastNoise;  // relative
  std::optional<Bytes> memory, reserved;
  std::vector<std::string> notes;
  std::vector<traces::DeviceEvidence> kernels = {};  // of some ranks of the run, each once
};

// Returns tokens and samples of the scenario's step, and ranks: what converts a log's rates into
// times.
traces::StepWork work_of(const Scenario& scenario, const HardwareProfile& profile);
// Reads the evidence of a log. Throws InputError if the batches of log and scenario differ, or if
// the log yields no step time.
StepEvidence evidence_of_log(const traces::FrameworkLog& log, const Scenario& scenario,
                             const HardwareProfile& profile, const std::string& file);

// Returns the evidence of profiles of a run's GPUs (sim/evidence/kernel_rows.h): kernels, and the
// step time if they are of whole steps of the scenario. Throws InputError as device_evidence()
// does, and if a profile was recorded on another shipped device.
StepEvidence evidence_of_profiles(const std::vector<traces::DeviceTrace>& traces,
                                  const Scenario& scenario, const HardwareProfile& profile);

// One entry of an evidence file.
struct EvidenceEntry {
  std::string scenario, log, source;  // paths as written
  std::vector<std::string> profiles = {};
  std::optional<Seconds> step;
  std::optional<double> noise;
  std::optional<Bytes> memory, reserved;
};
// Returns whether a JSON text is an evidence file.
bool is_evidence(const std::string& text, const std::string& file);
std::vector<EvidenceEntry> read_evidence(const std::string& text, const std::string& file);

}  // namespace polyphony::sim
