// What saving (exec/checkpoint/checkpoint_save.cpp) and loading (exec/checkpoint/checkpoint_load.cpp) a checkpoint have
// in common.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "exec/checkpoint/checkpoint_manifest.h"
#include "exec/runner/runner.h"
#include "exec/transport/communicator.h"
#include "shared/files/run_paths.h"

namespace polyphony::exec {

inline constexpr const char* kNotShared =
    "choose an --out folder on a file system that all ranks share";

// With the presence and the sizes of its files checked. Errors: InputError.
Manifest read_manifest(const std::string& folder, std::int64_t step);
std::string format_name(const Program& structure);

// Rank 0 learns every rank's two numbers; the others get only their own.
using TwoNumbers = std::pair<std::int64_t, std::int64_t>;
std::vector<TwoNumbers> gather(Transport& transport, TwoNumbers mine);

}  // namespace polyphony::exec
