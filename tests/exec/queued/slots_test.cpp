// Group kernels that occupy multiprocessors while they wait for their peers: deadlocks are reported
// with the kernels in them, and the number of kernels that a layout needs at the same time is
// computed.
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <doctest/doctest.h>

#include <chrono>
#include <cstdio>
#include <map>
#include <mutex>
#include <thread>

#include "tests/exec/device_double/device_world.h"
#include "tests/exec/device_double/slots.h"
#include "tests/exec/parity/parity.h"

namespace polyphony::exec::testing {

using torch::Tensor;

namespace {

// Both ranks call "a" and "b", each on its own stream: rank 0 calls "a" first, rank 1 "b" first,
// each makes the second call when the first one is running. Returns the error as text.
std::string crossed(int slots) {
  const Slots limited(slots);
  std::string said;
  std::mutex mutex;
  try {
    on_devices(2, false, [&](Transport& transport, torch::Device device) {
      const auto a = transport.make_group("a", {Rank(0), Rank(1)}),
                 b = transport.make_group("b", {Rank(0), Rank(1)});
      Tensor x = torch::ones({4}, device), y = torch::ones({4}, device);
      a->all_reduce(x, Reduction::sum);  // creates the connections
      b->all_reduce(y, Reduction::sum);
      drain(device);
      transport.barrier();
      const bool first = transport.rank() == Rank(0);
      const auto call = [&](bool of_a) {
        const c10::StreamGuard on(
            c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device));
        of_a ? a->all_reduce(x, Reduction::sum) : b->all_reduce(y, Reduction::sum);
      };
      call(first);
      while (slots_held(device) == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      transport.barrier();
      try {
        call(!first);
        drain(device);
      } catch (const std::exception& error) {
        const std::scoped_lock lock(mutex);
        said = error.what();
        throw;
      }
      CHECK(x.sum().item<float>() == 16);  // 4 numbers, summed over two ranks twice
    });
  } catch (const std::exception&) {
  }
  return said;
}

std::string step_with(const Case& c, int slots, std::uint64_t seed) {
  const Slots limited(slots);
  delay_kernels(100, seed);
  std::string said;
  try {
    Outcome outcome;
    on_devices(world_size(c.layout), false, [&](Transport& transport, torch::Device device) {
      const Outcome mine = run_case(transport, c, device);
      if (transport.rank() == Rank(0)) outcome = mine;
    });
    said = complaint(c, outcome);
  } catch (const std::exception& error) {
    said = error.what();
  }
  delay_kernels(0, 0);
  return said;
}

}  // namespace

TEST_SUITE("queued device") {
  TEST_CASE(
      "groups called in opposite orders deadlock if only one kernel fits, and the error names "
      "them") {
    CHECK(crossed(2) == "");
    const std::string said = crossed(1);
    INFO(said);
    CHECK(said.find("deadlock with 1 slots: ") != std::string::npos);
    for (const char* part :
         {"rank 0: ", "rank 1: ", "group a (waits for others)", "group a (waits for a slot)",
          "group b (waits for others)", "group b (waits for a slot)"})
      CHECK(said.find(part) != std::string::npos);
  }

  // Not a test: prints how many slots were sufficient for layouts in three runs with late kernels,
  // and the number that is always sufficient.
  TEST_CASE("table of slots" * doctest::skip()) {
    std::printf("%6s %6s  %s\n", "enough", "sure", "layout");
    std::map<int, int> layouts;
    for (const Case& c : parity_cases()) {
      const Program program = whole_program(c);
      if (world_size(c.layout) == 1) continue;
      const int sure = most_kernels_at_a_time(program) + 1;
      int enough = sure;
      std::string why;
      while (enough > 1) {
        std::string said;
        for (std::uint64_t seed = 1; seed <= 3 && said.empty(); ++seed)
          said = step_with(c, enough - 1, seed);
        if (!said.empty()) {
          why = said.substr(0, said.find('\n'));
          break;
        }
        --enough;
      }
      ++layouts[enough];
      std::printf("%6d %6d  %s\n               %s\n", enough, sure, c.name.c_str(), why.c_str());
      std::fflush(stdout);
    }
    for (const auto& [slots, count] : layouts)
      std::printf("%d layouts got by with %d\n", count, slots);
  }
}

}  // namespace polyphony::exec::testing
