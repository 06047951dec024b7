#include "shared/checkpoint/phase_end_json.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "shared/checkpoint/checkpoint_reader.h"
#include "shared/files/run_paths.h"
#include "shared/files/whole.h"

namespace polyphony {
namespace {

constexpr const char* kPhaseVersion = "polyphony_phase";

}  // namespace

void record_end(const std::string& folder, std::int64_t steps, std::int64_t ended_at_step) {
  const nlohmann::ordered_json record{
      {kPhaseVersion, 1}, {"steps", steps}, {"ended_at_step", ended_at_step}};
  write_file(RunPaths{folder}.phase_end(), record.dump() + "\n");
}

bool has_ended(const std::string& folder, std::int64_t steps) {
  const std::vector<std::int64_t> saved = steps_in(RunPaths{folder}.checkpoints());
  if (saved.empty()) return false;
  if (saved.back() >= steps) return true;
  const std::string file = RunPaths{folder}.phase_end();
  if (!std::filesystem::exists(file)) return false;
  const nlohmann::json record = nlohmann::json::parse(read_file(file), nullptr, false);
  return record ==
         nlohmann::json{{kPhaseVersion, 1}, {"steps", steps}, {"ended_at_step", saved.back()}};
}

}  // namespace polyphony
