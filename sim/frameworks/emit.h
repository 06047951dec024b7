// Writes a layout as the settings of a training framework, ready to start: `polyphony emit`.
//   What a framework cannot run is refused by name, never left out. What it runs otherwise than
//   predicted is a note.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "shared/scenario/scenario.h"
#include "sim/frameworks/settings.h"
#include "sim/frameworks/target_version.h"

namespace polyphony::sim {

struct Emitted {
  TargetVersion target = Target::megatron_lm;
  // The framework's own names and values; sections and fields are joined by dots.
  nlohmann::ordered_json arguments = nlohmann::ordered_json::object();
  std::vector<NamedText> files;     // paths are names inside the folder that they are written to
  std::vector<std::string> cannot;  // what the framework cannot run; then there are no files
  std::vector<std::string> notes;   // differences from the prediction, and what is left to do
  std::string start;                // the command that starts it
};

// `layout`: legal for the scenario, with the blocks of its stages (PlannedLayout::resolved).
Emitted emit(const Scenario& scenario, const Layout& layout, const TargetVersion& target);

// The parts of emit() that frameworks share.
struct EmitInput {
  const Scenario& scenario;
  const Layout& layout;
  ModuleId language;
  const Module& module;      // of the language
  const ModuleLayout& grid;  // of the language
  int dp = 1;
  int world = 1, per_node = 1;
  std::vector<int> blocks = {};  // of the language module by virtual stage; empty: one stage
  std::int64_t microbatch = 1;   // samples
  std::int64_t sequence = 0;     // tokens

  bool many_nodes() const { return world > per_node; }
  int nodes() const { return (world + per_node - 1) / per_node; }
  // Ranks that share a module's optimizer states, gradients or parameters are only some of those
  // that could.
  bool shards_in_part() const {
    return grid.shard != Shard::none && grid.shard_ranks > 0 &&
           grid.shard_ranks < grid.dp() * grid.cp;
  }
  // Some blocks recompute, and others do not.
  bool recomputes_in_part() const {
    return !grid.recompute_blocks.empty() &&
           (grid.recompute_blocks[0] > 0 || grid.recompute_blocks[1] < module.layers);
  }
};
// Drops from `emitted.arguments` what the target's version does without, and adds to
// `emitted.cannot` what it cannot do (settings_since()).
void check_version(Emitted& emitted);
void emit_megatron(const EmitInput& input, Emitted& emitted);
void emit_torchtitan(const EmitInput& input, Emitted& emitted);

// Returns a script that starts `program` (what follows torchrun's own options) on every node, and
// an sbatch script around it. `exports`: lines before it.
std::string torchrun_script(const EmitInput& input, const std::string& about,
                            const std::string& exports, const std::string& program);
std::string sbatch_script(const EmitInput& input, const std::string& script);

}  // namespace polyphony::sim
