// Checkpoints: atomic, and readable by any layout of the same model.
//   <folder>/step-<n>/rank-<r>.safetensors   what rank r writes: of each parameter a part
//                                            (exec/checkpoint/checkpoint_region.h) of its value and of both
//                                            AdamW moments, "<parameter>", "<parameter>.m",
//                                            "<parameter>.v", and for bf16 "<parameter>.master";
//                                            which part it is stands in the metadata. Every element
//                                            is written by one rank: the first of those that hold
//                                            it; ranks left without any write no file
//   <folder>/step-<n>/manifest.json          exec/checkpoint/checkpoint_manifest.h: the model's parameters,
//                                            the files with sizes and checksums
// Written as step-<n>.partial, every file synced, the manifest last; then renamed to step-<n>.
// Killed, out of power or out of disk space at any point: the checkpoint before is untouched, and
// what is left of the new one is ignored and removed by the next save. Loading reads and verifies
// just the files with elements that the rank needs, and picks its own from them: tensor, expert and
// pipeline parallelism and sharding may all differ. The folder must be on a file system that all
// ranks share; with disks of their own, saving and loading are refused, naming the rank.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "exec/parameters/held_parameters.h"
#include "exec/runner/runner.h"
#include "exec/transport/communicator.h"

namespace polyphony::exec {

// What one rank has to keep.
struct RankState {
  struct Group {
    HeldParameters* store = nullptr;
    bool first = true;  // no rank before this one holds the same shard of the same parameters
  };
  std::vector<Group> groups;
  std::int64_t updates = 0;  // AdamW's steps
  std::string run;           // run_record() of the scenario; empty: nothing is remembered of it
};
// Of the run that `structure` is a Program of; `stores` in the order of Runner::stores().
RankState rank_state(const Program& structure, Rank rank, std::vector<HeldParameters*> stores);

// Collective. The oldest checkpoints beyond `keep` are removed afterwards; those of later steps,
// which another run must have left, stay. `structure` tells the model, the number format and the
// count of ranks.
void save_checkpoint(const std::string& folder, std::int64_t step, Transport& transport,
                     const RankState& state, const Program& structure, int keep = 2);
void save_checkpoint(const std::string& folder, std::int64_t step, Transport& transport,
                     Runner& runner, const Program& structure, const std::string& run,
                     int keep = 2);
// The step of the newest checkpoint, or nothing. One without its manifest, or with a file missing
// or of a wrong size: InputError.
std::optional<std::int64_t> newest_checkpoint(const std::string& folder);
// ModuleLayout::blocks by module, of the run that wrote the newest; empty: there is none, or it does
// not say.
std::vector<std::vector<int>> newest_blocks(const std::string& folder);
// Collective. Values, moments, masters and AdamW's step count become those of the checkpoint, bit
// for bit. Another model or number format, a missing or damaged file (checksums): InputError.
// Answers what else the scenario changes ("data.seed was 1, is 2").
std::vector<std::string> load_checkpoint(const std::string& folder, std::int64_t step,
                                         Transport& transport, RankState& state,
                                         const Program& structure);
// The newest, if there is one.
struct Loaded {
  std::int64_t step = 0;
  std::vector<std::string> changed;
};
std::optional<Loaded> load_newest(const std::string& folder, Transport& transport, Runner& runner,
                                  const Program& structure, const std::string& run);

}  // namespace polyphony::exec
