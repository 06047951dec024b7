// A plan as stdout shows it: its stages, and why they are split where they are.
#pragma once

#include <string>
#include <vector>

#include "sim/plan_answers/joint_answer.h"
#include "sim/plan_answers/plan_answer.h"
#include "sim/plan_answers/segments_answer.h"

namespace polyphony::sim {

// Assignments of stages to modules, compared.
std::string joint_text(const JointAnswer& answer);
// Modules cut for planner dip, and what to change in the layout for it.
std::string segments_text(const SegmentsAnswer& answer);
std::string stages_text(const PlanAnswer& answer);
// Of one branch: its bottleneck; the bottleneck of another split and its change; the best other
// splits; all of that with the effect of moving one block over each boundary. The table of these
// moves has the columns and the note below, also on a page.
std::string bottleneck_text(const PlannedSplit& split);
std::vector<std::string> moves_columns();
std::string moves_note(const PlannedSplit& split);
std::string change_text(const OtherSplit& other, const PlannedSplit& split, Bytes device);
std::vector<std::string> other_splits(const PlannedSplit& split, Bytes device);
std::string split_text(const PlannedSplit& split, Bytes device);
// "78.3 GiB of 80.0 GiB", "(too much)" where it does not fit.
std::string memory_beside(Bytes memory, Bytes device);

// What a planner gains, and whether batches are large enough for the layout.
std::string work_text(const PlannedWork& work, int global_batch);
std::string order_text(const SearchedOrder& order);

}  // namespace polyphony::sim
