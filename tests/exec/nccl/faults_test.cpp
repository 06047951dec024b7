// Lost and failed ranks over the double of NCCL: exec/device/nccl.cpp and nccl_backend.cpp end
// every rank with a reason, use NCCL without mistakes meanwhile, and leave no communicator.
#include <doctest/doctest.h>

#include <latch>
#include <thread>

#include "exec/device/nccl_backend.h"
#include "exec/system/process.h"
#include "exec/transport/announcing.h"
#include "tests/exec/device_double/queued_device.h"
#include "tests/exec/nccl/nccl_world.h"
#include "tests/exec/nccl_double/nccl_double.h"

namespace polyphony::exec::testing {

using torch::Tensor;

namespace {

constexpr int kRanks = 4;

GlooOptions impatient(double timeout) {
  GlooOptions options;
  options.timeout = Seconds(timeout);
  options.liveness.beat = Seconds(0.1);
  options.liveness.grace = Seconds(120);  // the process is that of all ranks
  // No rank is silent here, however busy the machine is; after an alarm it may take five seconds.
  options.liveness.silent_beats = 1000;
  options.liveness.alarmed_beats = 50;
  return options;
}

struct Ended {
  std::vector<std::string> said;
  Seconds took{};
};

Ended ended(double timeout, const RankBody& body) {
  const Seconds began = steady_now();
  Ended result;
  result.said = said_over_nccl(kRanks, false, impatient(timeout), body);
  result.took = steady_now() - began;
  return result;
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_SUITE("nccl") {
  TEST_CASE("a live rank that does not come to make groups causes a time-out on all others") {
    for (const bool at_split : {false, true}) {
      CAPTURE(at_split);
      std::latch others{kRanks - 1};
      if (at_split) nccl::before_next_split(1, [&] { others.wait(); });
      const Ended result = ended(5, [&](Transport& transport, torch::Device) {
        const bool late = transport.rank() == Rank(1);
        try {
          if (at_split)
            announce(transport, {{"all", first_ranks(kRanks)}});
          else if (!late)
            transport.prepare({{transport.rank(), Rank(1)}});
        } catch (...) {
          if (!late) others.count_down();
          throw;
        }
        if (late) others.wait();
      });
      std::string all;
      for (const std::size_t rank : {0, 2, 3}) {
        CHECK(result.said[rank] != "");
        all += result.said[rank];
      }
      CHECK_MESSAGE(says(all, at_split ? "joining group all" : "missing rank 1"), all);
      CHECK(result.took < Seconds(30));
      check_nothing_left();
    }
  }

  TEST_CASE("a rank that stops while others wait in its collective is named with its reason") {
    const Ended result = ended(60, [](Transport& transport, torch::Device device) {
      announce(transport, {{"all", first_ranks(kRanks)}});
      const auto group = transport.make_group("all", first_ranks(kRanks));
      if (transport.rank() == Rank(1)) throw std::runtime_error("planted");
      Tensor sum = torch::ones({3}, device);
      group->all_reduce(sum, Reduction::sum);
      c10::Event done(device.type());
      done.record(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
      transport.await(done);
    });
    for (std::size_t rank = 0; rank < kRanks; ++rank)
      CHECK_MESSAGE(says(result.said[rank], rank == 1 ? "planted" : "lost rank 1"),
                    result.said[rank]);
    CHECK(result.took < Seconds(30));
    check_nothing_left();
  }

  TEST_CASE("a rank that stops while others connect to it is named with its reason") {
    const Ended result = ended(60, [](Transport& transport, torch::Device device) {
      announce(transport, {{"all", first_ranks(kRanks)}});
      const auto group = transport.make_group("all", first_ranks(kRanks));
      if (transport.rank() == Rank(1)) {
        std::this_thread::sleep_for(std::chrono::milliseconds(500));
        throw std::runtime_error("planted");
      }
      // The first call of its kind: the host waits inside NCCL, and only an abort ends it.
      Tensor all = torch::ones({kRanks}, device), part = torch::ones({1}, device);
      group->reduce_scatter(all, part, std::vector<std::int64_t>(kRanks, 1));
    });
    for (std::size_t rank = 0; rank < kRanks; ++rank)
      CHECK_MESSAGE(says(result.said[rank], rank == 1 ? "planted" : "lost rank 1: it stopped"),
                    result.said[rank]);
    CHECK(result.took < Seconds(30));
    check_nothing_left();
  }

  TEST_CASE("a communicator that fails by itself ends all ranks with NCCL's message") {
    const Ended result = ended(60, [](Transport& transport, torch::Device device) {
      announce(transport, {{"all", first_ranks(kRanks)}});
      const auto group = transport.make_group("all", first_ranks(kRanks));
      drain(device);
      transport.barrier();
      if (transport.rank() == Rank(1)) nccl::break_next_kernel(device.index(), kRanks);
      Tensor sum = torch::ones({3}, device);
      group->all_reduce(sum, Reduction::sum);
      c10::Event done(device.type());
      done.record(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
      transport.await(done);
    });
    for (std::size_t rank = 0; rank < kRanks; ++rank)
      CHECK_MESSAGE(says(result.said[rank],
                         "NCCL: remote process exited or there was a network "
                         "error; planted"),
                    result.said[rank]);
    CHECK(says(result.said[1], "all of ranks 0 1 2 3: NCCL"));
    CHECK(says(result.said[0], "lost rank 1: it stopped"));
    CHECK(result.took < Seconds(30));
    check_nothing_left();
  }

  TEST_CASE("a kernel that waits longer than the time-out ends its rank, and then the others") {
    std::latch others{kRanks - 1};
    const Ended result = ended(5, [&](Transport& transport, torch::Device device) {
      announce(transport, {{"all", first_ranks(kRanks)}});
      const auto group = transport.make_group("all", first_ranks(kRanks));
      if (transport.rank() == Rank(1)) {
        others.wait();
        transport.barrier();
        return;
      }
      Tensor sum = torch::ones({3}, device);
      group->all_reduce(sum, Reduction::sum);
      c10::Event done(device.type());
      done.record(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
      try {
        transport.await(done);
      } catch (...) {
        others.count_down();
        throw;
      }
    });
    for (std::size_t rank = 0; rank < kRanks; ++rank) CHECK(result.said[rank] != "");
    CHECK(says(result.said[0] + result.said[2] + result.said[3], "it did not finish in time"));
    CHECK(result.took < Seconds(30));
    check_nothing_left();
  }
}

}  // namespace polyphony::exec::testing
