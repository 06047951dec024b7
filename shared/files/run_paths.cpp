#include "shared/files/run_paths.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

namespace polyphony {
namespace {

namespace fs = std::filesystem;

bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= 18 &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

// Cuts `head` off the front; returns false if the text does not begin with it.
bool cut_front(std::string_view& text, std::string_view head) {
  if (!text.starts_with(head)) return false;
  text.remove_prefix(head.size());
  return true;
}
bool cut_back(std::string_view& text, std::string_view tail) {
  if (!text.ends_with(tail)) return false;
  text.remove_suffix(tail.size());
  return true;
}

bool is_step(std::string_view name) { return cut_front(name, "step-") && is_number(name); }
bool is_partial(std::string_view name) { return cut_back(name, kPartialSuffix) && is_step(name); }
bool is_step_or_partial(std::string_view name) { return is_step(name) || is_partial(name); }
bool is_part_of_checkpoint(std::string_view name) {
  return name == "manifest.json" ||
         (cut_front(name, "rank-") && cut_back(name, ".safetensors") && is_number(name));
}
// Whether the name is step-<n>.rank-<r> and `tail`.
bool is_of_step_and_rank(std::string_view name, std::string_view tail) {
  if (!cut_front(name, "step-") || !cut_back(name, tail)) return false;
  const std::size_t dot = name.find(".rank-");
  return dot != std::string_view::npos && is_number(name.substr(0, dot)) &&
         is_number(name.substr(dot + 6));
}
bool is_trace(std::string_view name) {
  if (name == "batches.jsonl" || name == "plans.bin") return true;
  if (cut_front(name, "journal.rank-")) return cut_back(name, ".bin") && is_number(name);
  return is_of_step_and_rank(name, ".json");
}
bool is_profile(std::string_view name) { return is_of_step_and_rank(name, ".json.gz"); }
bool is_kineto(std::string_view name) {
  if (name == "batches.jsonl") return true;
  cut_back(name, ".tmp");
  cut_back(name, kPartialSuffix);
  return is_profile(name);
}

// Event files for TensorBoard, but not those that other tools wrote.
bool is_events(std::string_view name) {
  return cut_front(name, "events.out.tfevents.") && cut_back(name, ".polyphony");
}

std::vector<std::string> those_in(const std::string& folder, bool (*is_ours)(std::string_view)) {
  std::vector<std::string> paths;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, none))
    if (is_ours(entry.path().filename().string())) paths.push_back(entry.path().string());
  return paths;
}

}  // namespace

std::string RunPaths::trace(std::int64_t step, std::uint32_t rank) const {
  return traces() + "/step-" + std::to_string(step) + ".rank-" + std::to_string(rank) + ".json";
}

std::string RunPaths::journal(std::uint32_t rank) const {
  return traces() + "/journal.rank-" + std::to_string(rank) + ".bin";
}

std::string RunPaths::kineto(std::int64_t step, std::uint32_t rank) const {
  return kineto() + "/step-" + std::to_string(step) + ".rank-" + std::to_string(rank) + ".json.gz";
}

std::map<std::int64_t, std::vector<std::string>> RunPaths::profiles() const {
  std::map<std::int64_t, std::vector<std::string>> found;
  for (std::string& path : those_in(kineto(), is_profile)) {
    const std::string name = fs::path(path).filename().string();
    found[std::stoll(name.substr(name.find('-') + 1))].push_back(std::move(path));
  }
  for (auto& [step, paths] : found) std::sort(paths.begin(), paths.end());
  return found;
}

std::vector<std::string> RunPaths::present() const {
  std::vector<std::string> paths = those_in(traces(), is_trace);
  for (std::string& path : those_in(kineto(), is_kineto)) paths.push_back(std::move(path));
  for (std::string& path : those_in(folder, is_events)) paths.push_back(std::move(path));
  for (const std::string& path :
       {scenario(), metrics(), answers(), pace(), pace_profile(), phase_end()})
    if (fs::exists(fs::symlink_status(path))) paths.push_back(path);
  return paths;
}

std::string step_folder(const std::string& checkpoints, std::int64_t step) {
  return checkpoints + "/step-" + std::to_string(step);
}

std::string manifest_file(const std::string& step_folder) { return step_folder + "/manifest.json"; }

std::string rank_file(std::uint32_t rank) {
  return "rank-" + std::to_string(rank) + ".safetensors";
}

std::vector<std::int64_t> steps_in(const std::string& checkpoints) {
  std::vector<std::int64_t> steps;
  for (const std::string& path : those_in(checkpoints, is_step))
    steps.push_back(std::stoll(path.substr(path.rfind('-') + 1)));
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::vector<std::string> checkpoint_folders(const std::string& checkpoints) {
  return those_in(checkpoints, is_step_or_partial);
}

std::vector<std::string> partial_checkpoints(const std::string& checkpoints) {
  return those_in(checkpoints, is_partial);
}

std::error_code remove_checkpoint(std::string step_folder) {
  std::error_code failed, kept;
  if (!step_folder.ends_with(kPartialSuffix)) {
    fs::rename(step_folder, step_folder + kPartialSuffix, failed);
    if (!failed) step_folder += kPartialSuffix;
  }
  failed.clear();
  for (const std::string& file : those_in(step_folder, is_part_of_checkpoint))
    if (!failed) fs::remove(file, failed);
  fs::remove(step_folder, kept);
  return failed;
}

}  // namespace polyphony
