// File names in a run's folder, and which files belong to a run:
//   run.lock, scenario.json, metrics.jsonl, answers.jsonl, events.out.tfevents.*.polyphony,
//   pace.json, pace-profile.json; phase.json of a phase that has ended
//   trace/batches.jsonl, trace/plans.bin, trace/step-<n>.rank-<r>.json; also
//   trace/journal.rank-<r>.bin while the run traces, or after it was killed
//   kineto/batches.jsonl, kineto/step-<n>.rank-<r>.json.gz; while one is written, also with
//   .partial and .partial.tmp
//   checkpoints/step-<n>/manifest.json, checkpoints/step-<n>/rank-<r>.safetensors; step-<n>.partial
//   while a checkpoint is written or removed
// Ownership of the folder: shared/files/run_folder.h. Contents of the files: traces/,
// exec/checkpoint/.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <system_error>
#include <vector>

namespace polyphony {

struct RunPaths {
  std::string folder;

  std::string lock() const { return folder + "/run.lock"; }
  std::string scenario() const { return folder + "/scenario.json"; }
  std::string metrics() const { return folder + "/metrics.jsonl"; }
  std::string answers() const { return folder + "/answers.jsonl"; }
  std::string pace() const { return folder + "/pace.json"; }
  std::string pace_profile() const { return folder + "/pace-profile.json"; }
  std::string phase_end() const { return folder + "/phase.json"; }
  std::string checkpoints() const { return folder + "/checkpoints"; }
  std::string traces() const { return folder + "/trace"; }
  std::string batches() const { return traces() + "/batches.jsonl"; }
  std::string plans() const { return traces() + "/plans.bin"; }
  std::string trace(std::int64_t step, std::uint32_t rank) const;
  std::string journal(std::uint32_t rank) const;
  std::string kineto() const { return folder + "/kineto"; }
  std::string kineto_batches() const { return kineto() + "/batches.jsonl"; }
  std::string kineto(std::int64_t step, std::uint32_t rank) const;
  // Returns the existing profiles in kineto/ by step, each step's by name.
  std::map<std::int64_t, std::vector<std::string>> profiles() const;
  // Returns the run's existing files, except its lock and its checkpoints.
  std::vector<std::string> present() const;
};

inline constexpr const char* kPartialSuffix = ".partial";
std::string step_folder(const std::string& checkpoints, std::int64_t step);
std::string manifest_file(const std::string& step_folder);
std::string rank_file(std::uint32_t rank);  // file name, without a folder
// Returns the steps of all checkpoints in the folder, ascending.
std::vector<std::int64_t> steps_in(const std::string& checkpoints);
// Return the folders of checkpoints, and those of partial checkpoints (interrupted writes or
// removals).
std::vector<std::string> checkpoint_folders(const std::string& checkpoints);
std::vector<std::string> partial_checkpoints(const std::string& checkpoints);
// Removes a checkpoint. The folder is renamed first, so that an interrupted removal leaves nothing
// that looks like a checkpoint. Files that no run wrote stay, and so does a folder that holds them.
// Returns the error of the first removal that failed.
std::error_code remove_checkpoint(std::string step_folder);

}  // namespace polyphony
