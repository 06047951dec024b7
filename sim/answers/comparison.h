// Recorded runs beside their predictions: the rows that `compare`, `calibrate`, `rehearse` and the
// report print.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "shared/hardware/hardware.h"
#include "sim/answers/predict.h"
#include "sim/answers/recorded.h"
#include "traces/compare/compare.h"

namespace polyphony::sim {

struct RunComparison {
  std::string folder;
  std::string layout;
  std::string profile, stack;  // that it was predicted with
  Prediction prediction;       // of the recorded Program
  traces::Comparison comparison;
};

RunComparison compare_run(const RecordedRun& run, const HardwareProfile& profile);

nlohmann::json shared_cores_json(const std::vector<traces::CoreShare>& shared);
// Step times of all, then the parts of each.
std::string comparison_text(const std::vector<RunComparison>& runs, double bar);
nlohmann::json comparison_json(const std::vector<RunComparison>& runs, double bar);

}  // namespace polyphony::sim
