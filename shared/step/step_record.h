// What was decided about a step, where plans are made while earlier steps train (exec/planning/live_plans.h):
// what rank 0 tells each rank, and what a file of plans holds to do the same again.
//   Late: no plan was there when the step began. Every rank then takes the layout's own schedule and
//   assignment, as without its planner: without_planner().
//   Bytes are as in shared/step/step_part.h: a version, numbers of seven bits, a checksum. A file is its
//   first line, then records, each after its length in eight bytes, lowest first.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "shared/step/step_part.h"

namespace polyphony {

Layout without_planner(Layout layout);

struct StepLetter {
  enum class Kind : std::uint8_t { planned, late, end };  // end: no step follows
  std::uint64_t step = 0;
  Kind kind = Kind::end;
  StepPart part;  // where it is planned
  bool operator==(const StepLetter&) const = default;
};
std::string to_bytes(const StepLetter& letter);
// Errors: StepPlanError.
StepLetter read_step_letter(std::string_view bytes);

struct StepRecord {
  std::uint64_t step = 0;
  std::uint64_t batch = 0;  // digest() of StepPlan{} and the batch: which data it is a plan of
  bool late = false;
  StepPlan plan;  // whole; empty when late
  bool operator==(const StepRecord&) const = default;
};
std::string to_bytes(const StepRecord& record);
StepRecord read_step_record(std::string_view bytes);  // StepPlanError

// The first line of a file of plans, and one more record of it.
std::string plans_head();
std::string plans_entry(const StepRecord& record);
// A last record that is cut off, by a run that was killed, is left out. Errors: InputError naming file
// and record.
std::vector<StepRecord> parse_plans(std::string_view bytes, const std::string& file);

// Why a plan that came from elsewhere is none of this batch on this layout, or nothing: positions that
// do not exist, works that are not the plan's, check_actions(). What is right so can be lowered.
std::vector<std::string> check_step(const Model& model, const Plan& plan, const StepPlan& step,
                                    const Batch& batch);

}  // namespace polyphony
