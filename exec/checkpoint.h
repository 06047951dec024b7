// Checkpoints: atomic, and readable by any layout of the same model.
//   <folder>/step-<n>/rank-<r>.safetensors   the slices that rank r writes: value and both AdamW
//   moments of each, named "<parameter>",
//                                            "<parameter>.m", "<parameter>.v", each with its slice
//                                            ("rows 1/2") in the metadata. One rank writes each
//                                            slice: data-parallel replica 0, and of a parameter
//                                            that all tensor-parallel ranks hold, the first; ranks
//                                            left without any write no file
//   <folder>/step-<n>/manifest.json          exec/checkpoint_manifest.h: the model's parameters,
//   the files with sizes and checksums
// Written as step-<n>.partial, every file synced, the manifest last; then renamed to step-<n>.
// Killed, out of power or out of disk space at any point: the checkpoint before is untouched, and
// what is left of the new one is ignored and removed by the next save. Loading reads and verifies
// just the files with slices that the rank needs, and cuts its own from them. The folder must be on
// a file system that all ranks share; with disks of their own, saving and loading are refused,
// naming the rank.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "exec/communicator.h"
#include "exec/runner.h"

namespace polyphony::exec {

// Collective. The oldest checkpoints beyond `keep` are removed afterwards; those of later steps,
// which another run must have left, stay.
void save_checkpoint(const std::string& folder, std::int64_t step, Transport& transport,
                     Runner& runner, const Program& structure, int keep = 2);
// The step of the newest checkpoint, or nothing. One without its manifest, or with a file missing
// or of a wrong size: InputError.
std::optional<std::int64_t> newest_checkpoint(const std::string& folder);
// Collective. Values, moments and AdamW's step count become those of the checkpoint, bit for bit.
// Another model or number format, a missing or damaged file (checksums): InputError.
void load_checkpoint(const std::string& folder, std::int64_t step, Transport& transport,
                     Runner& runner, const Program& structure);

}  // namespace polyphony::exec
