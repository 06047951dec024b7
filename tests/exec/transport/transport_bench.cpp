// Not a test: the measurements behind the size limits in exec/transport/in_process.cpp,
// exec/wire/peer_links.cpp and exec/gloo/gloo.h. On an idle machine:
//   exec_test --test-case="transport bench" --no-skip
// and for scripts/bench_executor: --test-case="small all-reduce bench"
#include <doctest/doctest.h>
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "exec/gloo/gloo_context.h"
#include "exec/transport/in_process.h"
#include "tests/exec/transport/rank_processes.h"
#include "tests/exec/transport/transport_behaviour.h"

namespace polyphony::exec {

namespace {

using Clock = std::chrono::steady_clock;

// Median over rounds of the mean of some calls.
template <class Call>
double microseconds(Transport& transport, int calls, const Call& call) {
  std::vector<double> rounds;
  for (int round = 0; round < 7; ++round) {
    transport.barrier();
    const auto start = Clock::now();
    for (int i = 0; i < calls; ++i) call();
    rounds.push_back(Seconds(Clock::now() - start).count() * 1e6 / calls);
  }
  std::sort(rounds.begin(), rounds.end());
  return rounds[rounds.size() / 2];
}

void measure(Transport& transport, const char* name) {
  const std::vector<Rank> all = everyone(transport);
  const auto group = transport.make_group("bench", all);
  const bool prints = transport.rank().value == 0;
  if (prints)
    std::printf("%-37s %13s %13s %13s %13s\n", "", "all_reduce", "all_gather", "reduce_scatter",
                "all_to_all");
  for (const std::int64_t kib : {4, 16, 64, 256, 1024, 16384}) {
    torch::Tensor tensor = torch::zeros({kib * 256});
    const int calls = static_cast<int>(std::clamp<std::int64_t>(4096 / kib, 1, 100));
    group->all_reduce(tensor, Reduction::sum);
    const double time =
        microseconds(transport, calls, [&] { group->all_reduce(tensor, Reduction::sum); });
    const std::vector<std::int64_t> counts(all.size(),
                                           kib * 256 / static_cast<std::int64_t>(all.size()));
    torch::Tensor part = torch::zeros({counts[0]}), other = torch::zeros({kib * 256});
    const double gather =
        microseconds(transport, calls, [&] { group->all_gather(part, tensor, counts); });
    const double scatter =
        microseconds(transport, calls, [&] { group->reduce_scatter(tensor, part, counts); });
    const double to_all =
        microseconds(transport, calls, [&] { group->all_to_all(tensor, other, counts, counts); });
    if (prints)
      std::printf("%-18s %d ranks %6d KiB %10.1f us %10.1f us %10.1f us %10.1f us\n", name,
                  transport.world_size(), static_cast<int>(kib), time, gather, scatter, to_all);
  }
}

// Between two ranks: a message there and back, halved.
void ping_pong(Transport& transport, const char* name) {
  const Rank peer(std::size_t{1} - transport.rank().value);
  for (const std::int64_t kib : {4, 16384}) {
    torch::Tensor tensor = torch::zeros({kib * 256});
    const double time = microseconds(transport, kib > 1000 ? 5 : 100,
                                     [&] {
                                       const bool first = transport.rank().value == 0;
                                       if (first) transport.send(tensor, peer, 1);
                                       transport.receive(tensor, peer, 1);
                                       if (!first) transport.send(tensor, peer, 1);
                                     }) /
                        2;
    if (transport.rank().value == 0) {
      std::printf("%-18s 2 ranks  message    %6d KiB %10.1f us  %6.2f GB/s\n", name,
                  static_cast<int>(kib), time, static_cast<double>(kib * 1024) / time / 1e3);
    }
  }
}

// 4 KiB through our direct connections and through c10d's own all-reduce over Gloo, in turns, so
// that a machine busy with other things slows both.
void beside_gloo(Transport& transport) {
  constexpr std::size_t kActions = 5;
  constexpr int kCalls = 5;
  const auto group = transport.make_group("bench", everyone(transport));
  const GlooGroup gloo = context_of(transport)->messages;
  std::vector<torch::Tensor> tensors{torch::zeros({1024})};
  const auto direct = [&] { group->all_reduce(tensors[0], Reduction::sum); };
  const auto by_gloo = [&] { gloo->allreduce(tensors)->wait(); };
  std::vector<double> ours, theirs;
  direct();
  by_gloo();
  for (std::size_t action = 0; action < kActions; ++action) {
    ours.push_back(microseconds(transport, kCalls, direct));
    theirs.push_back(microseconds(transport, kCalls, by_gloo));
  }
  std::sort(ours.begin(), ours.end());
  std::sort(theirs.begin(), theirs.end());
  if (transport.rank().value == 0)
    std::printf("all_reduce 4 KiB %d ranks direct %.1f us Gloo %.1f us\n", transport.world_size(),
                ours[kActions / 2], theirs[kActions / 2]);
}

GlooOptions direct_only() {
  GlooOptions options;
  options.direct_bytes = Bytes(std::int64_t{1} << 40);
  return options;
}

const bool kRoles =
    add_role(
        "bench direct", [](Transport& transport) { measure(transport, "direct"); },
        direct_only()) &&
    add_role(
        "bench Gloo", [](Transport& transport) { measure(transport, "Gloo messages"); },
        messages_only()) &&
    add_role("bench messages", [](Transport& transport) { ping_pong(transport, "Gloo"); }) &&
    add_role("bench beside Gloo", beside_gloo);

}  // namespace

TEST_CASE("transport bench" * doctest::skip()) {
  REQUIRE(kRoles);
  for (const int ranks : {2, 4, 8}) {
    run_in_process(ranks, [](Transport& transport) { measure(transport, "in process"); });
    for (const char* role : {"bench direct", "bench Gloo"}) {
      std::fputs(run_rank_processes(role, ranks, Seconds(120))[0].output.c_str(), stdout);
    }
  }
  run_in_process(2, [](Transport& transport) { ping_pong(transport, "in process"); });
  std::fputs(run_rank_processes("bench messages", 2, Seconds(120))[0].output.c_str(), stdout);
}

TEST_CASE("small all-reduce bench" * doctest::skip()) {
  REQUIRE(kRoles);
  for (const int ranks : {2, 4, 8})
    std::fputs(run_rank_processes("bench beside Gloo", ranks, Seconds(120))[0].output.c_str(),
               stdout);
}

}  // namespace polyphony::exec
