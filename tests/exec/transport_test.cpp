#include <signal.h>

#include <doctest/doctest.h>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "exec/in_process.h"
#include "exec/liveness.h"
#include "exec/sockets.h"
#include "shared/error.h"
#include "tests/exec/rank_processes.h"
#include "tests/exec/transport_behaviour.h"

namespace polyphony::exec {

namespace {

std::vector<Rank> everyone(const Transport& transport) {
  std::vector<Rank> ranks;
  for (int rank = 0; rank < transport.world_size(); ++rank)
    ranks.emplace_back(static_cast<std::size_t>(rank));
  return ranks;
}

// All-reduces for ever, as training does; `victim` is killed after some of them.
void loses(Transport& transport, std::uint32_t victim, std::int64_t count) {
  const auto group = transport.make_group("all", everyone(transport));
  torch::Tensor tensor = torch::ones({count});
  for (int round = 0;; ++round) {
    if (transport.rank().value == victim && round == 5) raise(SIGKILL);
    group->all_reduce(tensor, Reduction::sum);
    tensor.fill_(1);
  }
}

const bool kRoles =
    add_role("all behaviours", all_behaviours) &&
    add_role("lose rank 2 (direct)", [](Transport& transport) { loses(transport, 2, 100); }) &&
    add_role("lose rank 2 (Gloo)", [](Transport& transport) { loses(transport, 2, 1 << 20); }) &&
    add_role("lose rank 0", [](Transport& transport) { loses(transport, 0, 100); }) &&
    // Rank 1 waits for rank 0, who waits for rank 2, who is killed: rank 1 must hear of it too.
    add_role("lose the end of a chain",
             [](Transport& transport) {
               torch::Tensor tensor = torch::zeros({10});
               transport.barrier();
               if (transport.rank().value == 2) raise(SIGKILL);
               transport.receive(tensor, Rank(transport.rank().value == 0 ? 2u : 0u), 1);
             }) &&
    add_role("rank 1 stops",
             [](Transport& transport) {
               torch::Tensor tensor = torch::zeros({10});
               if (transport.rank().value == 1) throw std::runtime_error("loss is not a number");
               transport.receive(tensor, Rank(transport.rank().value == 0 ? 2u : 0u), 1);
             }) &&
    add_role("ranks disagree", [](Transport& transport) {
      const auto group = transport.make_group("all", everyone(transport));
      torch::Tensor tensor = torch::zeros({10 + static_cast<std::int64_t>(transport.rank().value)});
      group->all_reduce(tensor, Reduction::sum);
    });

// Quick to despair, so that the test need not wait for the usual 15 s of silence.
GlooOptions impatient() {
  GlooOptions options;
  options.liveness.beat = Seconds(0.1);
  return options;
}

const bool kFrozen = add_role(
    "rank 1 freezes",
    [](Transport& transport) {
      transport.barrier();
      if (transport.rank().value == 1) raise(SIGSTOP);
      transport.barrier();
    },
    impatient());

void check_lost(const std::string& role, int ranks, std::uint32_t victim, int victim_status,
                const std::string& reason = "", Seconds limit = Seconds(60),
                StoreHost host = StoreHost::rank_0) {
  const auto results = run_rank_processes(role, ranks, limit, host);
  const std::string name = "lost rank " + std::to_string(victim) + ": " + reason;
  double last = 0;
  for (std::uint32_t rank = 0; rank < results.size(); ++rank) {
    INFO("rank ", rank, ": ", results[rank].output);
    CHECK(results[rank].exit_status == (rank == victim ? victim_status : 1));
    if (rank != victim) CHECK(results[rank].output.find(name) != std::string::npos);
    last = std::max(last, results[rank].ended.count());
  }
  MESSAGE(role, ": all ended ", last - results[victim].ended.count(), " s after the victim");
  CHECK(last - results[victim].ended.count() < 10);
}

}  // namespace

TEST_SUITE("transport") {
  TEST_CASE("in process, 1 to 8 ranks") {
    for (const int ranks : {1, 2, 3, 4, 8}) {
      CAPTURE(ranks);
      CHECK_NOTHROW(run_in_process(ranks, all_behaviours));
    }
  }

  TEST_CASE("Gloo, 1, 2 and 4 processes") {
    for (const int ranks : {1, 2, 4}) {
      const auto results = run_rank_processes("all behaviours", ranks, Seconds(90));
      for (std::size_t rank = 0; rank < results.size(); ++rank) {
        INFO("rank ", rank, " of ", ranks, ": ", results[rank].output);
        CHECK(results[rank].exit_status == 0);
      }
    }
  }

  TEST_CASE("Gloo, when the launcher hosts the store") {
    for (const RankResult& result :
         run_rank_processes("all behaviours", 2, Seconds(90), StoreHost::launcher)) {
      CAPTURE(result.output);
      CHECK(result.exit_status == 0);
    }
  }

  TEST_CASE("nobody passes an in-process barrier before all are there") {
    std::atomic<int> arrived{0};
    CHECK_NOTHROW(run_in_process(6, [&](Transport& transport) {
      for (int round = 1; round <= 50; ++round) {
        ++arrived;
        transport.barrier();
        require(arrived >= 6 * round, "all arrived");
        transport.barrier();
      }
    }));
  }

  // Order matters in floating point: (1e8 + 1) - 1e8 is 0 in float, (1e8 - 1e8) + 1 is 1.
  TEST_CASE("sums are in group order, not in order of arrival") {
    run_in_process(3, [](Transport& transport) {
      constexpr std::array<float, 3> kValues{1e8F, 1.0F, -1e8F};
      const auto forward = transport.make_group("forward", {Rank(0u), Rank(1u), Rank(2u)});
      const auto other = transport.make_group("other", {Rank(0u), Rank(2u), Rank(1u)});
      for (const std::int64_t count : {1, 100000}) {
        torch::Tensor first = torch::full({count}, kValues[transport.rank().value]);
        torch::Tensor second = first.clone();
        std::this_thread::sleep_for(std::chrono::milliseconds(3 * (2 - transport.rank().value)));
        forward->all_reduce(first, Reduction::sum);
        other->all_reduce(second, Reduction::sum);
        require(first.eq(0).all().item<bool>(), "group order 0, 1, 2");
        require(second.eq(1).all().item<bool>(), "group order 0, 2, 1");
      }
    });
  }

  TEST_CASE("an exception on one in-process rank wakes all others, whatever they wait in") {
    std::atomic<int> woken{0};
    const auto body = [&](Transport& transport) {
      const auto group = transport.make_group("all", everyone(transport));
      torch::Tensor tensor = torch::zeros({5});
      try {
        switch (transport.rank().value) {
          case 0:
            transport.receive(tensor, Rank(3u), 1);
            break;
          case 1:
            group->all_reduce(tensor, Reduction::sum);
            break;
          case 2:
            transport.barrier();
            break;
          case 3:
            transport.send(tensor, Rank(1u), 9);
            break;
          default:
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
            throw std::runtime_error("out of luck");
        }
      } catch (const LostPeer& loss) {
        if (loss.rank == Rank(4u) &&
            std::string(loss.what()) == "lost rank 4: it stopped: out of luck")
          ++woken;
        throw;
      }
    };
    CHECK_THROWS_WITH_AS(run_in_process(5, body), "out of luck", std::runtime_error);
    CHECK(woken == 4);
  }

  TEST_CASE("a rank that never answers ends the run in time") {
    const auto body = [](Transport& transport) {
      torch::Tensor tensor = torch::zeros({5});
      if (transport.rank().value == 0) transport.receive(tensor, Rank(1u), 1);
    };
    CHECK_THROWS_AS(run_in_process(2, body, Seconds(0.2)), LostPeer);
  }

  TEST_CASE("unequal calls are found out") {
    CHECK_THROWS_AS(
        run_in_process(3,
                       [](Transport& transport) {
                         const auto group = transport.make_group("all", everyone(transport));
                         torch::Tensor tensor = torch::zeros({10 + transport.rank().value});
                         group->all_reduce(tensor, Reduction::sum);
                       }),
        InternalError);
    CHECK_THROWS_AS(run_in_process(2,
                                   [](Transport& transport) {
                                     torch::Tensor tensor =
                                         torch::zeros({3 + transport.rank().value});
                                     if (transport.rank().value == 0)
                                       transport.send(tensor, Rank(1u), 1);
                                     if (transport.rank().value == 1)
                                       transport.receive(tensor, Rank(0u), 1);
                                   }),
                    InternalError);
    const auto results = run_rank_processes("ranks disagree", 2, Seconds(60));
    for (const RankResult& result : results) {
      CAPTURE(result.output);
      CHECK(result.exit_status != 0);
    }
    CHECK((results[0].output + results[1].output).find("in another collective") !=
          std::string::npos);
  }
}

TEST_SUITE("lost peers") {
  TEST_CASE("killed in a direct all-reduce") {
    REQUIRE((kRoles && kFrozen));
    check_lost("lose rank 2 (direct)", 4, 2, -SIGKILL);
  }
  TEST_CASE("killed in an all-reduce of Gloo") { check_lost("lose rank 2 (Gloo)", 3, 2, -SIGKILL); }
  TEST_CASE("killed: the host of the store") { check_lost("lose rank 0", 3, 0, -SIGKILL); }
  TEST_CASE("killed: rank 0, when the launcher hosts the store") {
    check_lost("lose rank 0", 3, 0, -SIGKILL, "it gave no sign of life", Seconds(60),
               StoreHost::launcher);
  }
  TEST_CASE("killed at the end of a chain of waiting") {
    check_lost("lose the end of a chain", 3, 2, -SIGKILL);
  }
  // 30 beats of 0.1 s; the test itself ends the frozen one.
  TEST_CASE("alive but silent") {
    check_lost("rank 1 freezes", 3, 1, -SIGKILL, "it gave no sign of life for 3.0 s", Seconds(12));
  }
  TEST_CASE("an exception on one rank, with its reason") {
    check_lost("rank 1 stops", 3, 1, 3, "it stopped: loss is not a number");
  }
}

TEST_SUITE("transport") {
  TEST_CASE("a rank that never appears, and a port that is taken, are the user's to mend") {
    LaunchEnv launch;
    launch.world_size = 3;
    launch.master_port = listen_at("127.0.0.1").port;
    GlooOptions options;
    options.join_timeout = Seconds(0.3);
    CHECK_THROWS_WITH_AS(
        connect_gloo(launch, options),
        "launch: of 3 ranks these did not appear: 1, 2 (start them all within 0.3 s)", InputError);
    const Listener taken = listen_at("127.0.0.1");
    launch.master_port = taken.port;
    const std::string expected = "launch: rank 0 cannot listen at 127.0.0.1 port " +
                                 std::to_string(taken.port) +
                                 ": Address already in use (choose another MASTER_PORT)";
    CHECK_THROWS_WITH_AS(connect_gloo(launch, options), expected.c_str(), InputError);
    launch.rank = Rank(1u);
    launch.master_port = listen_at("127.0.0.1").port;  // nobody listens any more
    CHECK_THROWS_AS(connect_gloo(launch, options), InputError);
  }
}

}  // namespace polyphony::exec
