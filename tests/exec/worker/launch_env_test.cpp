#include "exec/system/launch_env.h"

#include <doctest/doctest.h>
#include <map>
#include <string>

#include "shared/error.h"

namespace polyphony::exec {

namespace {

Environment with(const std::map<std::string, std::string>& variables) {
  return [variables](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

std::string describe(const LaunchEnv& launch) {
  return "rank " + std::to_string(launch.rank.value) + " of " + std::to_string(launch.world_size) +
         " (local " + std::to_string(launch.local_rank) + " of " +
         std::to_string(launch.local_world_size) + ") from " + launch.source + ", meeting at " +
         launch.master_address + ":" + std::to_string(launch.master_port);
}

std::string told(const std::map<std::string, std::string>& variables,
                 const LaunchFlags& flags = {}) {
  return describe(read_launch_env(flags, with(variables)));
}

std::string refused(const std::map<std::string, std::string>& variables,
                    const LaunchFlags& flags = {}) {
  try {
    read_launch_env(flags, with(variables));
  } catch (const InputError& error) {
    CHECK(!error.hint.empty());
    return error.what();
  }
  return "accepted";
}

const std::map<std::string, std::string> kTorchrun{{"RANK", "5"},
                                                   {"WORLD_SIZE", "8"},
                                                   {"LOCAL_RANK", "1"},
                                                   {"LOCAL_WORLD_SIZE", "4"},
                                                   {"MASTER_ADDR", "10.0.0.7"},
                                                   {"MASTER_PORT", "31000"},
                                                   {"TORCHELASTIC_RUN_ID", "none"},
                                                   {"TORCHELASTIC_RESTART_COUNT", "2"},
                                                   {"TORCHELASTIC_USE_AGENT_STORE", "True"}};

}  // namespace

TEST_CASE("launch: without variables the world size is one") {
  CHECK(told({}) == "rank 0 of 1 (local 0 of 1) from alone, meeting at 127.0.0.1:29500");
}

TEST_CASE("launch: torchrun, whose agent hosts the store") {
  const LaunchEnv launch = read_launch_env({}, with(kTorchrun));
  CHECK(describe(launch) == "rank 5 of 8 (local 1 of 4) from torchrun, meeting at 10.0.0.7:31000");
  CHECK(!launch.store_host().valid());
  CHECK(launch.restart == 2);
  auto own_store = kTorchrun;
  own_store["TORCHELASTIC_USE_AGENT_STORE"] = "False";
  CHECK(read_launch_env({}, with(own_store)).store_host() == Rank(std::size_t{0}));
}

TEST_CASE("launch: the plain variables take precedence over Slurm's") {
  CHECK(told({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"SLURM_PROCID", "3"}, {"SLURM_NTASKS", "4"}}) ==
        "rank 1 of 2 (local 1 of 2) from RANK and WORLD_SIZE, meeting at 127.0.0.1:29500");
}

TEST_CASE("launch: srun") {
  const std::map<std::string, std::string> srun{{"SLURM_PROCID", "6"},
                                                {"SLURM_NTASKS", "8"},
                                                {"SLURM_LOCALID", "2"},
                                                {"SLURM_STEP_TASKS_PER_NODE", "4(x2)"},
                                                {"SLURM_JOB_NODELIST", "gnode[08-09],gnode12"}};
  CHECK(told(srun) == "rank 6 of 8 (local 2 of 4) from Slurm, meeting at gnode08:29500");
  // A job's shell has SLURM_NTASKS but no SLURM_PROCID: not started by srun.
  CHECK(read_launch_env({}, with({{"SLURM_NTASKS", "8"}})).source == "alone");
}

TEST_CASE("launch: the first host of a Slurm list") {
  CHECK(first_host("gnode7") == "gnode7");
  CHECK(first_host("a3,b[1-4]") == "a3");
  CHECK(first_host("gnode[10,20-22],other3") == "gnode10");
  CHECK(first_host("rack[007-009]-ib") == "rack007-ib");
  CHECK_THROWS_AS(first_host("gnode[10"), InputError);
}

TEST_CASE("launch: Open MPI and PMI") {
  const std::map<std::string, std::string> ompi{{"OMPI_COMM_WORLD_RANK", "3"},
                                                {"OMPI_COMM_WORLD_SIZE", "4"},
                                                {"OMPI_COMM_WORLD_LOCAL_RANK", "3"},
                                                {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}};
  CHECK(told(ompi) == "rank 3 of 4 (local 3 of 4) from Open MPI, meeting at 127.0.0.1:29500");
  CHECK(told({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}}) ==
        "rank 0 of 2 (local 0 of 2) from PMI, meeting at 127.0.0.1:29500");
  auto two_nodes = ompi;
  two_nodes["OMPI_COMM_WORLD_LOCAL_SIZE"] = "2";
  two_nodes["OMPI_COMM_WORLD_LOCAL_RANK"] = "1";
  CHECK(
      refused(two_nodes) ==
      "environment: Open MPI started 4 ranks on several nodes but gives no rendezvous address (set "
      "MASTER_ADDR to the "
      "first node's address)");
  two_nodes["MASTER_ADDR"] = "node1";
  CHECK(told(two_nodes) == "rank 3 of 4 (local 1 of 2) from Open MPI, meeting at node1:29500");
}

TEST_CASE("launch: flags take precedence") {
  const LaunchFlags flags{
      .rank = 1, .world_size = 2, .local_rank = 0, .master_address = "h", .master_port = 7};
  CHECK(told(kTorchrun, flags) == "rank 1 of 2 (local 0 of 2) from flags, meeting at h:7");
}

TEST_CASE("launch: errors are one line") {
  CHECK(refused({{"RANK", "1"}}) ==
        "environment: RANK is set but WORLD_SIZE is not (set both, or neither)");
  CHECK(refused({{"WORLD_SIZE", "2"}}) ==
        "environment: WORLD_SIZE is set but RANK is not (set both, or neither)");
  CHECK(refused({{"RANK", "2"}, {"WORLD_SIZE", "2"}}) ==
        "environment: RANK is 2 but WORLD_SIZE is 2 (ranks count from 0 to one less than the world "
        "size)");
  CHECK(refused({{"RANK", "x"}, {"WORLD_SIZE", "2"}}) ==
        "environment: RANK is not a whole number from 0 to 1048576: \"x\" (change it, or omit it)");
  CHECK(refused({{"RANK", "0"}, {"WORLD_SIZE", "-2"}}) ==
        "environment: WORLD_SIZE is not a whole number from 1 to 1048576: \"-2\" "
        "(change it, or omit it)");
  CHECK(refused({{"RANK", ""}, {"WORLD_SIZE", "2"}}) ==
        "environment: RANK is not a whole number from 0 to 1048576: \"\" (change it, or omit it)");
  CHECK(refused({{"MASTER_PORT", "99999"}}) ==
        "environment: MASTER_PORT is not a whole number from 1 to 65535: \"99999\" "
        "(change it, or omit it)");
  LaunchFlags flags;
  flags.rank = 1;
  CHECK(refused({}, flags) ==
        "command line: only one of --rank and --world-size is given (give both, or neither)");
  flags = LaunchFlags{};
  flags.rank = 3;
  flags.world_size = 2;
  CHECK(
      refused({}, flags) ==
      "command line: --rank 3 --world-size 2 (ranks count from 0 to one less than the world size)");
}

TEST_CASE("launch: a layout of another size") {
  const LaunchEnv launch = read_launch_env({}, with(kTorchrun));
  CHECK_NOTHROW(require_world_size(launch, 8, "s.json", "/layout"));
  CHECK_THROWS_WITH_AS(
      require_world_size(launch, 4, "s.json", "/layout"),
      "s.json: /layout: the layout has 4 ranks but 8 were started (torchrun) (start 4 ranks, "
      "or change the layout)",
      InputError);
}

}  // namespace polyphony::exec
