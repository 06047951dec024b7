// Opens and reads the measured runs that `calibrate`, `profile check` and `watch` are given:
// folders and traces of `polyphony run`, logs of frameworks, evidence files
// (sim/evidence/step_evidence.h), a number on the command line.
#pragma once

#include <vector>

#include "sim/cli/command.h"
#include "sim/evidence/step_evidence.h"
#include "traces/import/nccl_tests.h"

namespace polyphony::sim {

// Adds the options of evidence, but for --scenario, which add_measurement_options() adds.
void add_evidence_options(Arguments& args);

struct GivenEvidence {
  std::vector<std::string> runs;    // folders and traces among RUN..., for read_measurements()
  std::vector<StepEvidence> steps;  // from logs, evidence files and --step-time
  // Collectives of the first profiles that have some, their first file, and their cluster.
  std::vector<traces::CollectiveTimes> collectives;
  std::string profiled;
  Cluster cluster;
  std::optional<HardwareProfile> profile;  // of the first of `steps`; all have its device and stack
};
// Reads the evidence that the arguments name; prints notes on stderr.
GivenEvidence read_given_evidence(const Arguments& args, const ProfileChoice& profile);

}  // namespace polyphony::sim
