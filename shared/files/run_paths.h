// Where things stand in a run's folder, and which names there are a run's:
//   run.lock, scenario.json, metrics.jsonl, pace.json, pace-profile.json
//   trace/batches.jsonl, trace/plans.bin, trace/step-<n>.rank-<r>.json; while it traces, and after a
//   kill, trace/journal.rank-<r>.bin
//   checkpoints/step-<n>/manifest.json, checkpoints/step-<n>/rank-<r>.safetensors; step-<n>.partial
//   while it is written or removed
// Whose the folder is: shared/files/run_folder.h; what stands in the files: traces/, exec/checkpoint/.
#pragma once

#include <cstdint>
#include <string>
#include <system_error>
#include <vector>

namespace polyphony {

struct RunPaths {
  std::string folder;

  std::string lock() const { return folder + "/run.lock"; }
  std::string scenario() const { return folder + "/scenario.json"; }
  std::string metrics() const { return folder + "/metrics.jsonl"; }
  std::string pace() const { return folder + "/pace.json"; }
  std::string pace_profile() const { return folder + "/pace-profile.json"; }
  std::string checkpoints() const { return folder + "/checkpoints"; }
  std::string traces() const { return folder + "/trace"; }
  std::string batches() const { return traces() + "/batches.jsonl"; }
  std::string plans() const { return traces() + "/plans.bin"; }
  std::string trace(std::int64_t step, std::uint32_t rank) const;
  std::string journal(std::uint32_t rank) const;
  // Those of a run that are there, but its lock and its checkpoints.
  std::vector<std::string> present() const;
};

inline constexpr const char* kPartialSuffix = ".partial";
std::string step_folder(const std::string& checkpoints, std::int64_t step);
std::string manifest_file(const std::string& step_folder);
std::string rank_file(std::uint32_t rank);  // its name
// The steps of all checkpoints in the folder, ascending.
std::vector<std::int64_t> steps_in(const std::string& checkpoints);
// The folders of checkpoints, whole ones and what is left of others.
std::vector<std::string> checkpoint_folders(const std::string& checkpoints);
std::vector<std::string> partial_checkpoints(const std::string& checkpoints);
// Renamed first: cut short, nothing is left that looks like a checkpoint. Somebody's own file in it
// stays, and the folder with it. What could not be removed is the error.
std::error_code remove_checkpoint(std::string step_folder);

}  // namespace polyphony
