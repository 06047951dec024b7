#include "exec/device/device.h"
#include "exec/device/room_on_gpu.h"

#include <torch/cuda.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <iostream>
#include <stdexcept>

#include "exec/system/process.h"
#include "exec/transport/announcing.h"
#include "shared/error.h"
#include "tests/exec/transport/on_device.h"
#include "tests/exec/transport/rank_processes.h"
#include "tests/exec/transport/transport_behaviour.h"

namespace polyphony::exec {

namespace {

// The start of a run: as many groups as a rank of a large layout has, and messages to its
// neighbors.
void start_groups(Transport& transport, torch::Device device) {
  constexpr int kGroups = 30;
  const auto ranks = static_cast<std::size_t>(transport.world_size());
  const std::size_t me = transport.rank().value;
  std::vector<Rank> all;
  for (std::size_t rank = 0; rank < ranks; ++rank) all.emplace_back(rank);
  std::vector<NamedGroup> named;
  for (int group = 0; group < kGroups; ++group)
    named.push_back({"start " + std::to_string(group), all});
  transport.barrier();
  const Seconds begin = steady_now();
  announce(transport, named);
  const Seconds announced = steady_now();
  std::vector<std::unique_ptr<Communicator>> groups;
  for (const NamedGroup& group : named)
    groups.push_back(transport.make_group(group.name, group.members));
  const Seconds made = steady_now();
  std::vector<Channel> channels;
  for (const auto& [from, to] : {std::pair(me, me + 1), std::pair(me - 1, me)})
    if (from < ranks && to < ranks) channels.push_back({Rank(from), Rank(to)});
  std::sort(channels.begin(), channels.end());
  transport.prepare(channels);
  const Seconds prepared = steady_now();
  for (const auto& group : groups) {
    torch::Tensor one = torch::ones({1}, device);
    group->all_reduce(one, Reduction::sum);
    if (one.item<float>() != static_cast<float>(ranks)) throw std::runtime_error("another sum");
  }
  std::cout << "start: " << kGroups << " groups of " << ranks << " ranks on " << device.type()
            << " in " << (announced - begin).count() << " s and the host's in "
            << (made - announced).count() << " s, messages' in " << (prepared - made).count()
            << " s" << std::endl;
}

const bool kStartRole = add_device_role("start of groups", start_groups);
const bool kDeviceRole =
    add_device_role("all behaviours on the device", [](Transport& transport, torch::Device device) {
      OnDeviceTransport on_device(transport, device);
      all_behaviours(on_device);
    });

}  // namespace

TEST_SUITE("transport") {
  // Over NCCL on a machine with two GPUs, through host memory with one; without, as any CPU rank.
  TEST_CASE("collectives and messages of tensors on the machine's device") {
    REQUIRE(kDeviceRole);
    for (const RankResult& result :
         run_rank_processes("all behaviours on the device", 2, Seconds(90))) {
      CAPTURE(result.output);
      CHECK(result.exit_status == 0);
    }
  }

  // One rank for each GPU of the machine; scripts/first_gpu_hour prints the times.
  TEST_CASE("30 groups of all ranks and messages to neighbors start on the machine's device") {
    REQUIRE(kStartRole);
    const int ranks = std::clamp(static_cast<int>(torch::cuda::device_count()), 2, 8);
    const auto results = run_rank_processes("start of groups", ranks, Seconds(90));
    for (const RankResult& result : results) {
      CAPTURE(result.output);
      CHECK(result.exit_status == 0);
    }
    const std::string& said = results.front().output;
    const std::size_t at = said.find("start: ");
    REQUIRE(at != std::string::npos);
    MESSAGE(said.substr(at, said.find('\n', at) - at));
  }

  TEST_CASE("kernels that wait must leave multiprocessors of a GPU for computing") {
    CHECK(lacks_processors({.messages = 4, .collectives = 2}, 132) == "");  // 80 of 132
    CHECK(lacks_processors({.messages = 13, .collectives = 2}, 132) == "");
    CHECK(lacks_processors({.messages = 14, .collectives = 2}, 132) ==
          "messages on 14 channels from and to other ranks, and collectives, can take 120 of a "
          "GPU's 132 multiprocessors while they wait, and 16 must be left for computing");
    setenv("NCCL_MAX_CTAS", "16", 1);  // NCCL lets it replace what a group asks for
    CHECK(lacks_processors({.messages = 5, .collectives = 2}, 132) == "");  // 112
    CHECK(lacks_processors({.messages = 6, .collectives = 2}, 132) != "");
    unsetenv("NCCL_MAX_CTAS");
  }

  TEST_CASE("a requested device is chosen, or refused with its name") {
    LaunchEnv launch;
    launch.local_rank = 1;
    launch.local_world_size = 2;
    CHECK(choose_device("cpu", launch) == torch::Device(torch::kCPU));
    CHECK_THROWS_WITH_AS(choose_device("tpu", launch),
                         "--device: must be \"cuda\" or \"cpu\", not \"tpu\" (omit it to use a GPU "
                         "if there is one)",
                         InputError);
    const torch::Device chosen = choose_device("", launch);
    if (chosen.is_cuda()) {
      CHECK(choose_device("cuda", launch) == chosen);
      CHECK(chosen.index() == 1 % torch::cuda::device_count());
    } else {
      CHECK_THROWS_AS(choose_device("cuda", launch), InputError);
    }
    const Bytes all = memory_per_rank(torch::kCPU, LaunchEnv{});
    CHECK(memory_per_rank(torch::kCPU, launch) == Bytes(all.value / 2));
  }
}

}  // namespace polyphony::exec
