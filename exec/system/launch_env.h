// Who am I? Rank, world size and the meeting point of this process, from whatever started it.
//   Order: flags of the command line > torchrun (or plain RANK and WORLD_SIZE) > Slurm (srun) >
//   Open MPI > PMI (MPICH, Intel MPI) > a world of one. MASTER_ADDR and MASTER_PORT are honoured
//   under every launcher. The first that is there is taken whole: half-set variables are
//   InputErrors, never mixed with another launcher's.
// Source of the variable names: torch/distributed/run.py; srun(1) "OUTPUT ENVIRONMENT VARIABLES";
// mpirun(1); the PMI-1 wire protocol.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "shared/ids.h"

namespace polyphony::exec {

// Looks a variable up; absent and empty are not the same.
using Environment = std::function<std::optional<std::string>(const std::string&)>;
Environment process_environment();

// What the command line said; absent means "not said".
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
  int local_world_size = 1;  // world_size when the launcher does not tell
  std::string master_address = "127.0.0.1";
  std::uint16_t master_port = 29500;
  // torchrun's agent may run the store itself: then every rank, 0 too, is a client of it.
  bool launcher_hosts_store = false;
  int restart =
      0;  // attempt number of an elastic job: keys of different attempts must not meet in the store

  Rank store_host() const { return launcher_hosts_store ? Rank() : Rank(0); }
};

LaunchEnv read_launch_env(const LaunchFlags& flags, const Environment& environment);
// InputError when the layout asks for another number of ranks. `file` and `pointer` say where the
// layout stands.
void require_world_size(const LaunchEnv& launch, int layout_ranks, const std::string& file,
                        const std::string& pointer);
// The first host of a Slurm list: "gnode[10,20-22],other3" -> "gnode10".
std::string first_host(const std::string& slurm_list);

}  // namespace polyphony::exec
