// One rank's part of a StepPlan: its actions, the works that it runs or exchanges rows with,
// and their samples. A rank needs no more to lower a step (shared/lower/lower.h). The part is also
// what is sent to a rank when one rank plans for all.
//
//   Works included: those of the rank's own branches and of branches that a stage of the rank
//   has a link to, if they hold a sample of one of the rank's works. Positions of samples
//   count within the part.
//
//   Byte format: a version, the digest of the whole StepPlan, the part as variable-length integers,
//   a checksum of everything before it. Integers are written in groups of seven bits, lowest first
//   (LEB128; the "varint" of Protocol Buffers), signed ones zigzag-encoded.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "shared/plan/links.h"
#include "shared/step/step_plan.h"
#include "shared/step/turns.h"

namespace polyphony {

struct StepPart {
  StepPlan step;                         // StepPlan::only is valid
  Batch batch;                           // the samples of these works
  std::vector<std::uint32_t> positions;  // of these samples in the whole batch
  std::uint64_t whole = 0;               // digest() of the whole; equal on all ranks of a step
  bool operator==(const StepPart&) const = default;
};

// Cuts a StepPlan into parts; its tables are made once. Arguments must outlive it.
class StepParts {
 public:
  StepParts(const Model& model, const Plan& plan, const StepPlan& step, const Batch& batch);
  StepParts(const StepParts&) = delete;  // turn_table_ refers to turns_
  StepParts& operator=(const StepParts&) = delete;
  StepPart of(Rank rank) const;

 private:
  std::vector<bool> branches_met(Rank rank) const;

  const Plan& plan_;
  const StepPlan& step_;
  const Batch& batch_;
  std::vector<ChunkLink> links_;
  std::vector<std::uint32_t> turns_;    // of the whole step
  TurnTable turn_table_;                // finds them
  std::vector<std::uint32_t> first_;    // by sample: positions in holders_
  std::vector<std::uint32_t> holders_;  // works that hold it
  std::uint64_t digest_ = 0;
};

// Returns a hash of the whole StepPlan and batch.
std::uint64_t digest(const StepPlan& step, const Batch& batch);

// Thrown if the bytes are of another version, truncated, or damaged.
struct StepPlanError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// Convert a part to bytes and back. read_step_part() throws StepPlanError.
std::string to_bytes(const StepPart& part);
StepPart read_step_part(const std::string& bytes);

}  // namespace polyphony
