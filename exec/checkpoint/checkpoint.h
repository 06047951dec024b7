// Checkpoints of a training run: written atomically, and readable by any layout of the same model.
//   <folder>/step-<n>/rank-<r>.safetensors   what rank r writes: a part of each parameter's value
//                                            and of both AdamW moments, "<parameter>",
//                                            "<parameter>.m", "<parameter>.v", and for bf16
//                                            "<parameter>.master". The metadata states which part
//                                            (shared/checkpoint/checkpoint_region.h). Every element
//                                            is written by one rank, the first that holds it; ranks
//                                            with nothing to write write no file
//   <folder>/step-<n>/manifest.json          the model's parameters, the files with sizes and
//                                            checksums
//                                            (shared/checkpoint/checkpoint_manifest_json.h)
//
// Saving writes to step-<n>.partial, syncs every file, writes the manifest last and renames the
// folder to step-<n>. If a run is killed or loses power or disk space at any point, the previous
// checkpoint is untouched, and the incomplete one is ignored and removed by the next save.
//
// Loading reads and verifies only the files with elements that the rank needs, and picks these from
// them, so tensor, expert and pipeline parallelism and sharding may all differ. The folder must be
// on a file system that all ranks share; if it is not, saving and loading throw an error that names
// the rank.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "exec/parameters/held_parameters.h"
#include "exec/runner/runner.h"
#include "exec/transport/communicator.h"
#include "shared/checkpoint/bad_step_state.h"

namespace polyphony::exec {

// The state that one rank saves and loads.
struct RankState {
  struct Group {
    HeldParameters* store = nullptr;
    bool first = true;  // no rank before this one holds the same shard of the same parameters
  };
  std::vector<Group> groups;
  std::int64_t updates = 0;  // AdamW's step count
  std::string run;           // run_record() of the scenario; empty: not recorded
  BadStepState bad_steps{};
};
// Returns the state of a rank in the run of which `structure` is a Program. `stores`: in the order
// of Runner::stores().
RankState rank_state(const Program& structure, Rank rank, std::vector<HeldParameters*> stores);

// The same with the runner's updates, and the scenario's run_record().
RankState runner_state(Runner& runner, Rank rank, const Program& structure, const std::string& run);

// Which checkpoints of earlier steps stay when a new one is written.
struct KeptCheckpoints {
  int newest = 2;  // number of newest checkpoints kept, the new one included; at least 1
  std::optional<std::int64_t> best{};    // also this step's: lowest held-out loss
  std::optional<std::int64_t> rewind{};  // also this step's: where a rewind would go
};

// Writes the checkpoint of a step, then removes those that need not be kept. Checkpoints of later
// steps, which must come from another run, stay. `structure` provides the model, the number format
// and the number of ranks. Throws if this rank's part cannot be written, and on rank 0 if any
// cannot. Collective, as are all loads: where one rank throws, the others wait until it ends and
// then throw LostPeer.
void save_checkpoint(const std::string& folder, std::int64_t step, Transport& transport,
                     const RankState& state, const Program& structure,
                     const KeptCheckpoints& keep = {});
void save_checkpoint(const std::string& folder, std::int64_t step, Transport& transport,
                     Runner& runner, const Program& structure, const std::string& run,
                     const KeptCheckpoints& keep = {});
// Returns the step of the newest checkpoint, if there is one. Throws InputError if its manifest or
// a file is missing, or a file has the wrong size.
std::optional<std::int64_t> newest_checkpoint(const std::string& folder);
// Returns ModuleLayout::blocks by module, of the run that wrote the newest checkpoint; empty if
// there is no checkpoint or it does not contain them. Throws as newest_checkpoint().
std::vector<std::vector<int>> newest_blocks(const std::string& folder);
// Sets values, moments, master weights and AdamW's step count to those of the checkpoint, bit for
// bit.
// Returns descriptions of other values that differ in the scenario ("data.seed was 1, is 2").
// Throws InputError if the model or number format differs, if a parameter that is trained now was
// frozen then, or if a file is missing or damaged (checksums). Collective.
std::vector<std::string> load_checkpoint(const std::string& folder, std::int64_t step,
                                         Transport& transport, RankState& state,
                                         const Program& structure);
// What a load returns: the step, and what load_checkpoint() returns.
struct Loaded {
  std::int64_t step = 0;
  std::vector<std::string> changed;
  BadStepState bad_steps{};
};
// Loads the checkpoint of `step`. Throws as load_checkpoint(). Collective.
Loaded load_step(const std::string& folder, std::int64_t step, Transport& transport, Runner& runner,
                 const Program& structure, const std::string& run);
// Loads the newest checkpoint; returns nothing if there is none. Throws as load_checkpoint().
// Collective.
std::optional<Loaded> load_newest(const std::string& folder, Transport& transport, Runner& runner,
                                  const Program& structure, const std::string& run);
// Sets values and master weights to those of the newest checkpoint of another run, which may have
// another layout and number format (shared/checkpoint/carried_weights.h). Moments and AdamW's step
// count stay as they are, and so do parameters that the other run does not have. `changed` of the
// result are the values in which the models differ. Throws InputError if this run cannot begin with
// that checkpoint. Collective.
Loaded load_weights(const std::string& run_folder, Transport& transport, Runner& runner,
                    const Program& structure, const std::string& run);

}  // namespace polyphony::exec
