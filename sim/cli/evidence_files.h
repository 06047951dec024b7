// What `calibrate`, `profile check` and `watch` are given of measured runs: folders and traces of ours,
// logs of frameworks, evidence files (sim/evidence/step_evidence.h), a number on the command line. The
// place where these files are opened.
#pragma once

#include <vector>

#include "sim/cli/command.h"
#include "sim/evidence/step_evidence.h"

namespace polyphony::sim {

// --scenario is add_measurement_options()'.
void add_evidence_options(Arguments& args);

struct GivenEvidence {
  std::vector<std::string> runs;           // of RUN...: folders and traces, for read_measurements()
  std::vector<StepEvidence> steps;         // of logs, evidence files, --step-time
  std::optional<HardwareProfile> profile;  // of the first of `steps`; all have its device and stack
};
// Notes on stderr.
GivenEvidence read_given_evidence(const Arguments& args, const ProfileChoice& profile);

}  // namespace polyphony::sim
