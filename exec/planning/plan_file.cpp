#include "exec/planning/plan_file.h"

#include <algorithm>
#include <filesystem>

#include "shared/error.h"
#include "shared/files/whole.h"

namespace polyphony::exec {
namespace {

std::string before(const std::string& path, std::uint64_t first) {
  std::string kept;
  if (first == 0 || !std::filesystem::exists(path)) return kept;
  for (const StepRecord& record : parse_plans(read_records(path), path))
    if (record.step < first) kept += plans_entry(record);
  return kept;
}

InputError wrong(const std::string& what, const std::string& hint) {
  return {"--plans", "", what, hint};
}

}  // namespace

PlanFile::PlanFile(const std::string& path, std::uint64_t first) : path_(path) {
  if (path.empty()) return;
  const std::string kept = before(path, first);
  file_.open(path, std::ios::binary | std::ios::trunc);
  write(plans_head() + kept);
}

void PlanFile::add(const StepRecord& record) {
  if (!path_.empty()) write(plans_entry(record));
}

void PlanFile::write(const std::string& bytes) {
  file_ << bytes << std::flush;
  if (!file_)
    throw InputError(path_, "", "cannot be written",
                     "free some disk space or choose another --plans file");
}

StepRecord replayed(const Model& model, const Plan& plan, const std::vector<StepRecord>& records,
                    std::uint64_t step, const Batch& batch) {
  const std::string name = "the plan of step " + std::to_string(step);
  const auto record = std::find_if(records.begin(), records.end(),
                                   [&](const StepRecord& r) { return r.step == step; });
  if (record == records.end())
    throw wrong(name + " is missing", "make plans for as many steps, or train fewer steps");
  if (record->batch != digest(StepPlan{}, batch))
    throw wrong(name + " was made for other data",
                "replay plans of the same scenario, data and seed");
  if (record->late) return *record;
  const auto faults = check_step(model, plan, record->plan, batch);
  if (!faults.empty())
    throw wrong(name + " was made for another layout: " + faults.front(),
                "replay plans of the same scenario and layout");
  return *record;
}

}  // namespace polyphony::exec
