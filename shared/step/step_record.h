// Messages and files about the plan of a step, where plans are made while earlier steps still train
// (exec/planning/live_plans.h): the letter that rank 0 sends to each rank, and the record in a file
// of plans, from which a later run repeats the same decisions.
//   Late: no plan was available when the step began. Every rank then uses the layout's own schedule
//   and assignment, as if it had no planner: without_planner().
//
//   Byte format as in shared/step/step_part.h: a version, integers in groups of seven bits, a
//   checksum. A file is a first line, then records, each preceded by its length in eight bytes,
//   lowest first.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "shared/step/step_part.h"

namespace polyphony {

// Returns the layout without its planner.
Layout without_planner(Layout layout);

struct StepLetter {
  enum class Kind : std::uint8_t { planned, late, end };  // end: this was the last step
  std::uint64_t step = 0;
  Kind kind = Kind::end;
  StepPart part;  // if planned
  bool operator==(const StepLetter&) const = default;
};
std::string to_bytes(const StepLetter& letter);
// Throws StepPlanError.
StepLetter read_step_letter(std::string_view bytes);

struct StepRecord {
  std::uint64_t step = 0;
  std::uint64_t batch = 0;  // digest() of StepPlan{} and the batch: identifies the planned data
  bool late = false;
  StepPlan plan;  // of all ranks; empty when late
  bool operator==(const StepRecord&) const = default;
};
std::string to_bytes(const StepRecord& record);
StepRecord read_step_record(std::string_view bytes);  // throws StepPlanError

// Return the first line of a file of plans, and the bytes of one record in it.
std::string plans_head();
std::string plans_entry(const StepRecord& record);
// Returns the records of a file of plans. A truncated last record (its run was killed) is ignored.
// Throws InputError naming file and record.
std::vector<StepRecord> parse_plans(std::string_view bytes, const std::string& file);

// Returns why a plan that was read from a message or file does not fit this batch and layout; empty
// if it does: positions that do not exist, works that are not the plan's, errors of
// check_actions(). A plan without errors can be lowered.
std::vector<std::string> check_step(const Model& model, const Plan& plan, const StepPlan& step,
                                    const Batch& batch);

}  // namespace polyphony
