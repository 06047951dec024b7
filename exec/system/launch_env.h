// Reads this process's rank, world size and rendezvous address from the launcher that started it.
//
// Sources in order of precedence: command-line flags, torchrun (or plain RANK and WORLD_SIZE),
// Slurm (srun), Open MPI, PMI (MPICH, Intel MPI), else a world of one rank. MASTER_ADDR and
// MASTER_PORT are honored under every launcher.
//
// The first source that is present supplies everything: a partly set group of variables is an
// InputError and is never completed from another launcher's variables.
// Source of the variable names: torch/distributed/run.py; srun(1) "OUTPUT ENVIRONMENT VARIABLES";
// mpirun(1); the PMI-1 wire protocol.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "shared/ids.h"

namespace polyphony::exec {

// Looks up an environment variable. An absent variable (nullopt) differs from an empty one.
using Environment = std::function<std::optional<std::string>(const std::string&)>;
Environment process_environment();

// Values given on the command line; nullopt means that the option was not given.
struct LaunchFlags {
  std::optional<int> rank, world_size, local_rank;
  std::optional<std::string> master_address;
  std::optional<int> master_port;
};

struct LaunchEnv {
  std::string
      source;  // "flags", "torchrun", "RANK and WORLD_SIZE", "Slurm", "Open MPI", "PMI", "alone"
  Rank rank{0};
  int world_size = 1;
  int local_rank = 0;        // among the ranks of this node
  int local_world_size = 1;  // world_size when the launcher does not provide it
  std::string master_address = "127.0.0.1";
  std::uint16_t master_port = 29500;
  // torchrun's agent may run the store itself: then every rank, rank 0 too, is a client of it.
  bool launcher_hosts_store = false;
  // Attempt number of an elastic job; it keeps the store keys of different attempts apart.
  int restart = 0;

  Rank store_host() const { return launcher_hosts_store ? Rank() : Rank(0); }
};

// Returns the launch description. Throws InputError if variables are malformed or only partly set.
LaunchEnv read_launch_env(const LaunchFlags& flags, const Environment& environment);
// Throws InputError if the layout needs another number of ranks than were started. `file` and
// `pointer` give the layout's place for the message.
void require_world_size(const LaunchEnv& launch, int layout_ranks, const std::string& file,
                        const std::string& pointer);
// Returns the first host of a Slurm node list: "gnode[10,20-22],other3" -> "gnode10".
std::string first_host(const std::string& slurm_list);

}  // namespace polyphony::exec
