// Files of plans (shared/step/step_record.h): written as steps are decided, and what is replayed of them.
#pragma once

#include <fstream>
#include <string>
#include <vector>

#include "shared/step/step_record.h"

namespace polyphony::exec {

// Without a path nothing is written. Of a run that goes on at step `first` an earlier file keeps the
// steps before. Errors: InputError.
class PlanFile {
 public:
  PlanFile(const std::string& path, std::uint64_t first);
  void add(const StepRecord& record);

 private:
  void write(const std::string& bytes);
  std::string path_;
  std::ofstream file_;
};

// That of a step, of these data and this plan. InputError: there is none.
StepRecord replayed(const Model& model, const Plan& plan, const std::vector<StepRecord>& records,
                    std::uint64_t step, const Batch& batch);

}  // namespace polyphony::exec
