#include "exec/network/device.h"

#include <torch/cuda.h>

#include <doctest/doctest.h>

#include "shared/error.h"
#include "tests/exec/transport/on_device.h"
#include "tests/exec/transport/rank_processes.h"
#include "tests/exec/transport/transport_behaviour.h"

namespace polyphony::exec {

namespace {

const bool kRole =
    add_device_role("all behaviours on the device", [](Transport& transport, torch::Device device) {
      OnDeviceTransport on_device(transport, device);
      all_behaviours(on_device);
    });

}  // namespace

TEST_SUITE("transport") {
  // Over NCCL on a machine with two GPUs, through host memory with one; without, as any CPU rank.
  TEST_CASE("collectives and messages of tensors on the machine's device") {
    REQUIRE(kRole);
    for (const RankResult& result :
         run_rank_processes("all behaviours on the device", 2, Seconds(90))) {
      CAPTURE(result.output);
      CHECK(result.exit_status == 0);
    }
  }

  TEST_CASE("a wish for a device is met or refused by name") {
    LaunchEnv launch;
    launch.local_rank = 1;
    launch.local_world_size = 2;
    CHECK(choose_device("cpu", launch) == torch::Device(torch::kCPU));
    CHECK_THROWS_WITH_AS(choose_device("tpu", launch),
                         "--device: \"tpu\" is neither cuda nor cpu (leave it out: a GPU is used "
                         "when there is one)",
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
