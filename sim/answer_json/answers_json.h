// The JSON of every answer: what `--format json` prints and what other programs are given. One
// writer per answer, in <answer>_json.cpp. Times in seconds, sizes in bytes, shares as fractions;
// null: not known.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "sim/plan_answers/joint_answer.h"
#include "sim/plan_answers/plan_answer.h"
#include "sim/plan_answers/segments_answer.h"
#include "sim/step_answers/comparison.h"
#include "sim/step_answers/step.h"
#include "sim/step_answers/stream.h"
#include "sim/step_answers/what_if.h"
#include "sim/step_answers/why.h"
#include "sim/sweep/goal_sweep.h"
#include "sim/sweep/vary.h"
#include "traces/calibrate/calibrate.h"
#include "traces/compare/shared_cores.h"
#include "traces/kineto/ranks.h"

namespace polyphony::sim {

nlohmann::json to_json(const PlanAnswer& answer);
nlohmann::json to_json(const JointAnswer& answer);
nlohmann::json to_json(const SegmentsAnswer& answer);
nlohmann::json to_json(const StepAnswer& answer);
nlohmann::json to_json(const WhyAnswer& answer, const Model& model);
nlohmann::json to_json(const Sweep& sweep, const Model& model);
// A row of it.
nlohmann::json to_json(const Candidate& candidate, const Model& model);
// That of the best variant, and its key "goal" where there is one.
nlohmann::json to_json(const GoalSweep& answer);
nlohmann::json to_json(const Varied& varied);
// `steps`: of the run that the risk is for.
nlohmann::json to_json(const BatchStream& stream, int steps);
// `bar`: see traces::Comparison::within().
nlohmann::json to_json(const std::vector<RunComparison>& runs, double bar);
nlohmann::json to_json(const traces::Calibration& fitted);
nlohmann::json to_json(const traces::RankSet& ranks);
// Keys that stand beside those of the changed answer.
nlohmann::json to_json(const WhatIf& what_if);

// Ranks that did not have their core to themselves.
nlohmann::json shared_cores_json(const std::vector<traces::CoreShare>& shared);
nlohmann::json shared_cores_schema();
// Of one prediction: dollars and kWh, of a step and of a million tokens.
nlohmann::json spent_json(const Figures& figures);

}  // namespace polyphony::sim
