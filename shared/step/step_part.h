// A rank's part of a StepPlan: its actions, the works that it runs and those whose rows it sends or
// receives, and their samples. It is what a rank needs to lower a step (shared/lower/lower.h), and
// what travels when one rank plans for all.
//   Works that are met: those of branches that a stage of the rank has a link to, and of its own
//   branch, that hold a sample of one of its works. Positions of samples are counted in the part.
//   Bytes: a version, the digest of the whole StepPlan, the part as variable-length integers, a
//   checksum of all before it. Numbers are written by seven bits, lowest first (LEB128; Protocol
//   Buffers' "varint"), signed ones zigzag.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "shared/plan/links.h"
#include "shared/step/step_plan.h"

namespace polyphony {

struct StepPart {
  StepPlan step;                         // StepPlan::only is valid
  Batch batch;                           // of the works
  std::vector<std::uint32_t> positions;  // of those samples in the whole batch
  std::uint64_t whole = 0;               // digest() of the whole: equal on every rank of a step
  bool operator==(const StepPart&) const = default;
};

// Cuts the parts of one StepPlan; makes its tables once. Arguments must outlive it.
class StepParts {
 public:
  StepParts(const Model& model, const Plan& plan, const StepPlan& step, const Batch& batch);
  StepPart of(Rank rank) const;

 private:
  std::vector<bool> branches_met(Rank rank) const;

  const Plan& plan_;
  const StepPlan& step_;
  const Batch& batch_;
  std::vector<ChunkLink> links_;
  std::vector<std::uint32_t> first_;    // by sample: positions in holders_
  std::vector<std::uint32_t> holders_;  // works that hold it
  std::uint64_t digest_ = 0;
};

// Of everything in it and in the batch.
std::uint64_t digest(const StepPlan& step, const Batch& batch);

// Another version, cut short, damaged.
struct StepPlanError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
std::string to_bytes(const StepPart& part);
StepPart read_step_part(const std::string& bytes);

}  // namespace polyphony
