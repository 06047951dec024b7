// JSON writers of all answers, for `--format json` and for other programs. One writer per answer,
// in <answer>_json.cpp. Times are in seconds, sizes in bytes, shares are fractions; null means
// unknown. The schemas are in sim/answer_json/answer_schema.h.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "sim/frameworks/emit_answer.h"
#include "sim/frameworks/imported_answer.h"
#include "sim/frameworks/target_change.h"
#include "sim/plan_answers/joint_answer.h"
#include "sim/plan_answers/plan_answer.h"
#include "sim/plan_answers/segments_answer.h"
#include "sim/question/least_nodes.h"
#include "sim/question/question.h"
#include "sim/step_answers/comparison.h"
#include "sim/step_answers/step.h"
#include "sim/step_answers/stream.h"
#include "sim/step_answers/what_if.h"
#include "sim/step_answers/why.h"
#include "sim/sweep/goal_sweep.h"
#include "sim/sweep/phase_plan.h"
#include "sim/sweep/vary.h"
#include "sim/text/question_words.h"
#include "traces/calibrate/calibrate.h"
#include "traces/compare/shared_cores.h"
#include "traces/kineto/ranks.h"

namespace polyphony::sim {

// What `polyphony ask` was asked.
struct AskedQuestion {
  const AskedScenario& asked;
  const std::optional<LeastNodes>& least;  // with --gpus ?xNAME
};

nlohmann::json to_json(const PlanAnswer& answer);
nlohmann::json to_json(const JointAnswer& answer);
nlohmann::json to_json(const SegmentsAnswer& answer);
nlohmann::json to_json(const StepAnswer& answer);
nlohmann::json to_json(const WhyAnswer& answer, const Model& model);
nlohmann::json to_json(const Sweep& sweep, const Model& model);
// One row of a sweep.
nlohmann::json to_json(const Candidate& candidate, const Model& model);
// The sweep of the best variant, with an additional key "goal" if the scenario has a goal.
nlohmann::json to_json(const GoalSweep& answer);
nlohmann::json to_json(const Varied& varied);
// `answers`: of the sweeps of its phases.
nlohmann::json to_json(const PhasePlan& plan, const std::vector<nlohmann::json>& answers);
// Additional keys, which are merged into the object of the sweep that answers the question.
nlohmann::json to_json(const AskedQuestion& question);
nlohmann::json to_json(const ImportAnswer& answer);
nlohmann::json to_json(const EmitAnswer& answer);
// The value of the key "target" of a sweep's answer.
nlohmann::json to_json(const TargetFound& found);
// The value of the key "question" of a sweep's answer.
nlohmann::json to_json(const QuestionWords& words);
// `steps`: number of steps of the run whose risk of running out of memory is given.
nlohmann::json to_json(const BatchStream& stream, int steps);
// `bar`: the tolerance of traces::Comparison::verdict().
nlohmann::json to_json(const std::vector<RunComparison>& runs, double bar);
nlohmann::json to_json(const traces::Calibration& fitted);
nlohmann::json to_json(const traces::RankSet& ranks);
// Additional keys, which are merged into the object of the modified answer.
nlohmann::json to_json(const WhatIf& what_if);

// Ranks that shared their CPU core with other processes.
nlohmann::json shared_cores_json(const std::vector<traces::CoreShare>& shared);
nlohmann::json shared_cores_schema();
// Dollars and kWh of one prediction, per step and per million tokens.
nlohmann::json spent_json(const Figures& figures);

}  // namespace polyphony::sim
