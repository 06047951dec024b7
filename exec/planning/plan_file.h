// Files of plans (shared/step/step_record.h): written as steps are decided, and read for a replay.
#pragma once

#include <fstream>
#include <string>
#include <vector>

#include "shared/step/step_record.h"

namespace polyphony::exec {

// Writes records to a file; without a path it writes nothing. If a run resumes at step `first`, an
// existing file keeps the records of the steps before it; they can be lost if the process dies in
// the constructor, which rewrites the file. Throws InputError.
class PlanFile {
 public:
  PlanFile(const std::string& path, std::uint64_t first);
  void add(const StepRecord& record);

 private:
  void write(const std::string& bytes);
  std::string path_;
  std::ofstream file_;
};

// Returns the record of a step. Throws InputError if there is none, or if it was made for other
// data or another plan.
StepRecord replayed(const Model& model, const Plan& plan, const std::vector<StepRecord>& records,
                    std::uint64_t step, const Batch& batch);

}  // namespace polyphony::exec
