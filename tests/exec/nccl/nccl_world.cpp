#include "tests/exec/nccl/nccl_world.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <thread>

#include "exec/device/nccl.h"
#include "exec/wire/sockets.h"
#include "tests/exec/device_double/queued_device.h"
#include "tests/exec/nccl_double/nccl_double.h"
#include "tests/exec/support/free_port.h"

namespace polyphony::exec::testing {

std::vector<std::string> said_over_nccl(int ranks, bool in_order, const GlooOptions& options,
                                        const RankBody& body) {
  // LibTorch's recorder of collectives is one for a process, and not made for ranks as threads.
  setenv("TORCH_FR_BUFFER_SIZE", "0", 1);
  const std::uint16_t port = free_port();
  std::vector<std::string> said(static_cast<std::size_t>(ranks));
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      std::string& text = said[static_cast<std::size_t>(rank)];
      const torch::Device device = queued_device(rank);
      LaunchEnv launch;
      launch.rank = Rank(static_cast<std::size_t>(rank));
      launch.world_size = launch.local_world_size = ranks;
      launch.local_rank = rank;
      launch.master_port = port;
      std::unique_ptr<Transport> transport;
      try {
        transport = connect_nccl(connect_gloo(launch, options), device, in_order);
        body(*transport, device);
        drain(device);
        transport->barrier();
      } catch (const std::exception& error) {
        text = error.what();
        if (transport) transport->abort(text);
      }
      transport.reset();
      wait_idle(device);
    });
  threads.clear();
  return said;
}

void check_nothing_left() {
  CHECK(nccl::take_mistakes() == std::vector<std::string>{});
  CHECK(nccl::take_left() == std::vector<std::string>{});
}

void over_nccl(int ranks, bool in_order, const RankBody& body) {
  const auto said = said_over_nccl(ranks, in_order, {}, body);
  CHECK(said == std::vector<std::string>(static_cast<std::size_t>(ranks)));
  check_nothing_left();
}

std::vector<Rank> first_ranks(int count) {
  std::vector<Rank> ranks;
  for (int rank = 0; rank < count; ++rank) ranks.emplace_back(static_cast<std::size_t>(rank));
  return ranks;
}

}  // namespace polyphony::exec::testing
