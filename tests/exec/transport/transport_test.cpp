#include <doctest/doctest.h>
#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "exec/transport/in_process.h"
#include "shared/error.h"
#include "tests/exec/transport/rank_processes.h"
#include "tests/exec/transport/transport_behaviour.h"

namespace polyphony::exec {

namespace {

const bool kTransportRoles =
    add_role("all behaviours", all_behaviours) &&
    add_role("all behaviours over messages", all_behaviours, messages_only()) &&
    add_role("ranks disagree", [](Transport& transport) {
      const auto group = transport.make_group("all", everyone(transport));
      torch::Tensor tensor = torch::zeros({10 + static_cast<std::int64_t>(transport.rank().value)});
      group->all_reduce(tensor, Reduction::sum);
    });

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
      REQUIRE(kTransportRoles);
      const auto results = run_rank_processes("all behaviours", ranks, Seconds(90));
      for (std::size_t rank = 0; rank < results.size(); ++rank) {
        INFO("rank ", rank, " of ", ranks, ": ", results[rank].output);
        CHECK(results[rank].exit_status == 0);
      }
    }
  }

  TEST_CASE("Gloo, collectives over its messages, 3 processes") {
    for (const RankResult& result :
         run_rank_processes("all behaviours over messages", 3, Seconds(90))) {
      CAPTURE(result.output);
      CHECK(result.exit_status == 0);
    }
  }

  TEST_CASE("Gloo, when the launcher hosts the store") {
    for (const RankResult& result :
         run_rank_processes("all behaviours", 2, Seconds(90), StoreHost::launcher)) {
      CAPTURE(result.output);
      CHECK(result.exit_status == 0);
    }
  }

  TEST_CASE("no rank passes an in-process barrier before all have arrived") {
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

  TEST_CASE("a rank that stops wakes the others in every collective") {
    const std::vector<std::int64_t> counts{5, 5, 5};
    const std::vector<std::function<void(Communicator&, torch::Tensor&, torch::Tensor&)>> calls{
        [](Communicator& group, torch::Tensor& all, torch::Tensor&) {
          group.all_reduce(all, Reduction::max);
        },
        [&](Communicator& group, torch::Tensor& all, torch::Tensor& mine) {
          group.all_gather(mine, all, counts);
        },
        [&](Communicator& group, torch::Tensor& all, torch::Tensor& mine) {
          group.reduce_scatter(all, mine, counts);
        },
        [&](Communicator& group, torch::Tensor& all, torch::Tensor&) {
          torch::Tensor received = torch::zeros({15});
          group.all_to_all(all, received, counts, counts);
        }};
    for (const auto& call : calls) {
      std::atomic<int> woken{0};
      const auto body = [&](Transport& transport) {
        const auto group = transport.make_group("all", everyone(transport));
        torch::Tensor all = torch::zeros({15}), mine = torch::zeros({5});
        try {
          if (transport.rank().value == 1) throw std::runtime_error("out of luck");
          call(*group, all, mine);
        } catch (const LostPeer& loss) {
          if (loss.rank == Rank(1u)) ++woken;
          throw;
        }
      };
      CHECK_THROWS_WITH_AS(run_in_process(3, body), "out of luck", std::runtime_error);
      CHECK(woken == 2);
    }
  }

  TEST_CASE("a rank that never answers ends the run in time") {
    const auto body = [](Transport& transport) {
      torch::Tensor tensor = torch::zeros({5});
      if (transport.rank().value == 0) transport.receive(tensor, Rank(1u), 1);
    };
    CHECK_THROWS_AS(run_in_process(2, body, Seconds(0.2)), LostPeer);
  }

  TEST_CASE("tensors that do not fit their counts, or overlap, are refused") {
    run_in_process(1, [](Transport& transport) {
      const auto group = transport.make_group("alone", {Rank(0u)});
      torch::Tensor all = torch::zeros({4}), mine = torch::zeros({4});
      torch::Tensor shifted = torch::zeros({8}).narrow(0, 2, 4), other = torch::zeros({4});
      torch::Tensor integers = torch::zeros({4}, torch::kInt64);
      const auto refused = [](const std::function<void()>& call) {
        try {
          call();
        } catch (const InternalError&) {
          return true;
        }
        return false;
      };
      require(!refused([&] { group->all_gather(all, all, {4}); }), "in place is no overlap");
      require(refused([&] { group->all_gather(mine, all, {3}); }), "wrong sum of counts");
      require(refused([&] { group->all_gather(mine, all, {4, 0}); }), "one count too many");
      require(refused([&] { group->reduce_scatter(all, integers, {4}); }), "two types");
      require(refused([&] { group->all_to_all(all, all, {4}, {4}); }), "all-to-all in place");
      const torch::Tensor wide = torch::zeros({6});
      torch::Tensor left = wide.narrow(0, 0, 4), right = wide.narrow(0, 2, 4);
      require(refused([&] { group->reduce_scatter(left, right, {4}); }), "overlap");
      require(refused([&] { group->all_gather(left, right, {4}); }), "overlap");
      require(!refused([&] { group->all_to_all(shifted, other, {4}, {4}); }), "apart");
    });
  }

  TEST_CASE("differing calls are detected") {
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
    // Of unequal counts every member hears, also those that they do not concern.
    std::atomic<int> heard{0};
    const auto body = [&](Transport& transport) {
      const auto group = transport.make_group("all", everyone(transport));
      const std::int64_t one_more = transport.rank().value == 2 ? 1 : 0;
      const std::vector<std::int64_t> out{0, one_more, 0}, in{0, 0, 0};
      torch::Tensor sent = torch::zeros({one_more}), received = torch::zeros({0});
      try {
        group->all_to_all(sent, received, out, in);
      } catch (const InternalError&) {
        ++heard;
        throw;
      }
    };
    CHECK_THROWS_AS(run_in_process(3, body), InternalError);
    CHECK(heard == 3);
    const auto results = run_rank_processes("ranks disagree", 2, Seconds(60));
    for (const RankResult& result : results) {
      CAPTURE(result.output);
      CHECK(result.exit_status != 0);
    }
    CHECK((results[0].output + results[1].output).find("in another collective") !=
          std::string::npos);
  }
}

}  // namespace polyphony::exec
