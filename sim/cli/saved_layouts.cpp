#include "sim/cli/saved_layouts.h"

#include <filesystem>
#include <iostream>
#include <set>

#include "shared/files/whole.h"
#include "shared/scenario_io/scenario_json.h"
#include "shared/text/figure_text.h"
#include "sim/sweep/written_layout.h"

namespace polyphony::sim {
namespace {

void save_layout(const Scenario& scenario, const HardwareProfile& profile, const Candidate& c,
                 const std::string& path) {
  write_file(path,
             movable_text(with_layout_of(c, scenario, profile), std::filesystem::current_path()));
  std::cerr << "wrote " << path << "\n";
}

// The option that names the row to save; --save-rank is its earlier name. Empty: neither was given.
std::string save_option(const Arguments& args) {
  return args.has("save-row") ? "save-row" : args.has("save-rank") ? "save-rank" : "";
}

void make_folder(const std::string& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed)
    throw InputError(folder, "", "cannot be made: " + failed.message(),
                     "choose another folder for --save");
}

// Saves the best layout of each placement as a scenario of its own.
void save(const Scenario& scenario, const HardwareProfile& profile, const Sweep& result,
          const std::string& folder) {
  std::set<Placement> seen;
  for (const Candidate& c : result.ranked) {
    if (!seen.insert(c.layout.placement).second) continue;
    save_layout(scenario, profile, c, folder + "/" + name(c.layout.placement) + ".json");
  }
}

}  // namespace

void check_saved_row(const Arguments& args) {
  if (const std::string option = save_option(args); !option.empty()) {
    if (args.integer(option) < 1)
      throw InputError("--" + option, "", "must be at least 1 (got " + args.given(option) + ")",
                       "rows are counted from 1 to the number of rows of the answer");
    check_writable(args.require("out"));
  } else if (args.has("out")) {
    throw InputError("--out", "", "is the file of --save-row, which is missing",
                     "add --save-row 1 for the best layout");
  }
}

const Candidate& row_of(const Sweep& result, int row, const std::string& option) {
  if (row < 1 || static_cast<std::size_t>(row) > result.ranked.size())
    throw InputError(option, "",
                     "row " + std::to_string(row) + " does not exist: the answer has " +
                         counted(static_cast<std::int64_t>(result.ranked.size()), "row", "rows"),
                     result.ranked.empty() ? "nothing can be saved"
                                           : "1 to " + std::to_string(result.ranked.size()));
  return result.ranked[static_cast<std::size_t>(row) - 1];
}

void save_row(const Arguments& args, const Scenario& scenario, const HardwareProfile& profile,
              const Sweep& result) {
  const std::string option = save_option(args);
  if (option.empty()) return;
  save_layout(scenario, profile, row_of(result, args.integer(option), "--" + option),
              args.require("out"));
}

void check_saved(const Arguments& args) {
  check_saved_row(args);
  if (args.has("save")) {
    make_folder(args.text("save"));
    check_writable(args.text("save") + "/homogeneous.json");
  }
}

void save_layouts(const Arguments& args, const Scenario& scenario, const HardwareProfile& profile,
                  const Sweep& result) {
  save_row(args, scenario, profile, result);
  if (args.has("save")) save(scenario, profile, result, args.text("save"));
}

}  // namespace polyphony::sim
