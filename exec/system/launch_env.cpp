#include "exec/system/launch_env.h"

#include <charconv>
#include <cstdlib>
#include <vector>

#include "shared/error.h"

namespace polyphony::exec {

namespace {

constexpr int kMaxPort = 65535;
constexpr int kMaxRanks = 1 << 20;

[[noreturn]] void bad(const std::string& what, const std::string& hint) {
  throw InputError("environment", "", what, hint);
}

int to_int(const std::string& name, const std::string& text, int lowest, int highest) {
  int value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end || value < lowest || value > highest) {
    bad(name + " is not a whole number from " + std::to_string(lowest) + " to " +
            std::to_string(highest) + ": \"" + text + "\"",
        "change it, or omit it");
  }
  return value;
}

std::optional<int> optional_int(const Environment& environment, const std::string& name, int lowest,
                                int highest) {
  const auto text = environment(name);
  if (!text) return std::nullopt;
  return to_int(name, *text, lowest, highest);
}

// Returns the value of the first of `names` that is set.
std::optional<std::string> first_set(const Environment& environment,
                                     const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (environment(name)) return name;
  }
  return std::nullopt;
}

// The names of one launcher's variables; alternatives in order of preference.
struct Names {
  std::string source;
  std::string rank;
  std::vector<std::string> world_size;
  std::vector<std::string> local_rank;
  std::vector<std::string> local_world_size;
};

const std::vector<Names>& launchers() {
  static const std::vector<Names> table{
      {"torchrun", "RANK", {"WORLD_SIZE"}, {"LOCAL_RANK"}, {"LOCAL_WORLD_SIZE"}},
      {"Slurm",
       "SLURM_PROCID",
       {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"},
       {"SLURM_LOCALID"},
       {"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"}},
      {"Open MPI",
       "OMPI_COMM_WORLD_RANK",
       {"OMPI_COMM_WORLD_SIZE"},
       {"OMPI_COMM_WORLD_LOCAL_RANK"},
       {"OMPI_COMM_WORLD_LOCAL_SIZE"}},
      {"PMI", "PMI_RANK", {"PMI_SIZE"}, {"MPI_LOCALRANKID"}, {"MPI_LOCALNRANKS"}},
  };
  return table;
}

// Fills in ranks and sizes if this launcher's variables are set; returns whether they are.
bool take(const Names& names, const Environment& environment, LaunchEnv& launch) {
  const auto size_name = first_set(environment, names.world_size);
  const bool has_rank = environment(names.rank).has_value();
  if (!has_rank && !size_name) return false;
  // Slurm sets the number of tasks in every job, but only srun gives a process its own number.
  // PMI_SIZE alone does not mean that PMI started this process, either.
  if (!has_rank && names.source != "torchrun") return false;
  if (!has_rank) bad("WORLD_SIZE is set but RANK is not", "set both, or neither");
  if (!size_name)
    bad(names.rank + " is set but " + names.world_size.front() + " is not", "set both, or neither");
  launch.source = names.source;
  launch.world_size = to_int(*size_name, *environment(*size_name), 1, kMaxRanks);
  launch.rank =
      Rank(static_cast<std::size_t>(*optional_int(environment, names.rank, 0, kMaxRanks)));
  if (launch.rank.value >= static_cast<std::uint32_t>(launch.world_size)) {
    bad(names.rank + " is " + std::to_string(launch.rank.value) + " but " + *size_name + " is " +
            std::to_string(launch.world_size),
        "ranks count from 0 to one less than the world size");
  }
  launch.local_world_size = launch.world_size;
  launch.local_rank = static_cast<int>(launch.rank.value);
  if (const auto name = first_set(environment, names.local_world_size)) {
    // Slurm's "4(x2),3" lists the counts of all nodes; we use the first.
    const std::string text = *environment(*name);
    launch.local_world_size =
        to_int(*name, text.substr(0, text.find_first_of("(,")), 1, launch.world_size);
  }
  if (const auto name = first_set(environment, names.local_rank)) {
    launch.local_rank = *optional_int(environment, *name, 0, launch.world_size - 1);
  }
  return true;
}

bool take_flags(const LaunchFlags& flags, LaunchEnv& launch) {
  if (!flags.rank && !flags.world_size) return false;
  const auto wrong = [](const std::string& what, const std::string& hint) {
    throw InputError("command line", "", what, hint);
  };
  if (!flags.rank || !flags.world_size) {
    wrong("only one of --rank and --world-size is given", "give both, or neither");
  }
  if (*flags.world_size < 1 || *flags.rank < 0 || *flags.rank >= *flags.world_size) {
    wrong("--rank " + std::to_string(*flags.rank) + " --world-size " +
              std::to_string(*flags.world_size),
          "ranks count from 0 to one less than the world size");
  }
  launch.source = "flags";
  launch.rank = Rank(static_cast<std::size_t>(*flags.rank));
  launch.world_size = launch.local_world_size = *flags.world_size;
  launch.local_rank = *flags.rank;
  return true;
}

// Sets the rendezvous address and port: from the flags, else from MASTER_ADDR and MASTER_PORT, else
// the launcher's first host.
void find_master(const LaunchFlags& flags, const Environment& environment, LaunchEnv& launch) {
  if (flags.master_port) {
    launch.master_port = static_cast<std::uint16_t>(
        to_int("--master-port", std::to_string(*flags.master_port), 1, kMaxPort));
  } else if (const auto port = optional_int(environment, "MASTER_PORT", 1, kMaxPort)) {
    launch.master_port = static_cast<std::uint16_t>(*port);
  }
  if (flags.master_address) {
    launch.master_address = *flags.master_address;
  } else if (const auto address = environment("MASTER_ADDR"); address && !address->empty()) {
    launch.master_address = *address;
  } else if (launch.source == "Slurm") {
    const auto name =
        first_set(environment, {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"});
    if (name) launch.master_address = first_host(*environment(*name));
  } else if (launch.local_world_size < launch.world_size) {
    bad(launch.source + " started " + std::to_string(launch.world_size) +
            " ranks on several nodes but gives no rendezvous address",
        "set MASTER_ADDR to the first node's address");
  }
}

}  // namespace

Environment process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* const value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return value;
  };
}

LaunchEnv read_launch_env(const LaunchFlags& flags, const Environment& environment) {
  LaunchEnv launch;
  launch.source = "alone";
  bool found = take_flags(flags, launch);
  for (const Names& names : launchers()) found = found || take(names, environment, launch);
  if (flags.local_rank) {
    launch.local_rank =
        to_int("--local-rank", std::to_string(*flags.local_rank), 0, launch.world_size - 1);
  }
  find_master(flags, environment, launch);
  if (launch.source == "torchrun") {
    if (!environment("TORCHELASTIC_RUN_ID")) launch.source = "RANK and WORLD_SIZE";
    if (environment("TORCHELASTIC_USE_AGENT_STORE") == "True") launch.launcher_hosts_store = true;
    launch.restart =
        optional_int(environment, "TORCHELASTIC_RESTART_COUNT", 0, kMaxRanks).value_or(0);
  }
  return launch;
}

void require_world_size(const LaunchEnv& launch, int layout_ranks, const std::string& file,
                        const std::string& pointer) {
  if (launch.world_size == layout_ranks) return;
  throw InputError(file, pointer,
                   "the layout has " + std::to_string(layout_ranks) + " ranks but " +
                       std::to_string(launch.world_size) + " were started (" + launch.source + ")",
                   "start " + std::to_string(layout_ranks) + " ranks, or change the layout");
}

std::string first_host(const std::string& slurm_list) {
  const std::size_t bracket = slurm_list.find_first_of("[,");
  if (bracket == std::string::npos || slurm_list[bracket] == ',')
    return slurm_list.substr(0, bracket);
  const std::size_t first_end = slurm_list.find_first_of(",-]", bracket);
  const std::size_t close = slurm_list.find(']', bracket);
  if (first_end == std::string::npos || close == std::string::npos) {
    bad("the node list \"" + slurm_list + "\" has no closing bracket", "set MASTER_ADDR");
  }
  const std::size_t comma = slurm_list.find(',', close);
  const std::size_t stop = comma == std::string::npos ? slurm_list.size() : comma;
  const std::string tail = slurm_list.substr(close + 1, stop - close - 1);
  if (tail.find('[') != std::string::npos)
    bad("the node list \"" + slurm_list + "\" has no first host", "set MASTER_ADDR");
  return slurm_list.substr(0, bracket) + slurm_list.substr(bracket + 1, first_end - bracket - 1) +
         tail;
}

}  // namespace polyphony::exec
