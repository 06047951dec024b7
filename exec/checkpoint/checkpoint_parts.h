// Functions shared by saving (exec/checkpoint/checkpoint_save.cpp) and loading
// (exec/checkpoint/checkpoint_load.cpp) a checkpoint.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "exec/runner/runner.h"
#include "exec/transport/communicator.h"
#include "shared/checkpoint/checkpoint_reader.h"
#include "shared/files/run_paths.h"

namespace polyphony::exec {

inline constexpr const char* kNotShared = "choose a folder on a file system that all ranks share";

// Returns the safetensors name of the number format of a run's parameters.
std::string format_name(const Program& structure);

// Returns every rank's two numbers on rank 0, and only their own on the other ranks.
using TwoNumbers = std::pair<std::int64_t, std::int64_t>;
std::vector<TwoNumbers> gather(Transport& transport, TwoNumbers mine);

}  // namespace polyphony::exec
