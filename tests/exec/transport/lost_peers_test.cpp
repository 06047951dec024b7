#include <signal.h>
#include <unistd.h>

#include <doctest/doctest.h>
#include <algorithm>
#include <functional>
#include <string>

#include "exec/system/process.h"
#include "tests/exec/transport/rank_processes.h"
#include "tests/exec/transport/transport_behaviour.h"

namespace polyphony::exec {

namespace {

using Call = std::function<void(Communicator&, torch::Tensor&, torch::Tensor&)>;

void all_reduces(Communicator& group, torch::Tensor& all, torch::Tensor&) {
  group.all_reduce(all, Reduction::sum);
}
void gathers(Communicator& group, torch::Tensor& all, torch::Tensor& mine) {
  group.all_gather(mine, all,
                   std::vector<std::int64_t>(static_cast<std::size_t>(group.size()), mine.numel()));
}
void scatters(Communicator& group, torch::Tensor& all, torch::Tensor& mine) {
  group.reduce_scatter(
      all, mine, std::vector<std::int64_t>(static_cast<std::size_t>(group.size()), mine.numel()));
}
void exchanges(Communicator& group, torch::Tensor& all, torch::Tensor& mine) {
  const std::vector<std::int64_t> counts(static_cast<std::size_t>(group.size()), mine.numel());
  torch::Tensor received = torch::zeros_like(all);
  group.all_to_all(all, received, counts, counts);
}

// The same call for ever, as training does; `victim` is killed after some of them.
Role loses(std::uint32_t victim, std::int64_t count, const Call& call) {
  return [=](Transport& transport) {
    const auto group = transport.make_group("all", everyone(transport));
    torch::Tensor mine = torch::ones({count}), all = torch::ones({count * group->size()});
    for (int round = 0;; ++round) {
      if (transport.rank().value == victim && round == 5) raise(SIGKILL);
      call(*group, all, mine);
    }
  };
}

bool add_losses(const std::string& name, const Call& call) {
  return add_role("lose rank 2 in " + name + " (direct)", loses(2, 100, call)) &&
         add_role("lose rank 2 in " + name + " (messages)", loses(2, 100'000, call),
                  messages_only());
}

const bool kRoles =
    add_losses("all_reduce", all_reduces) && add_losses("all_gather", gathers) &&
    add_losses("reduce_scatter", scatters) && add_losses("all_to_all", exchanges) &&
    add_role("lose rank 0", loses(0, 100, all_reduces)) &&
    // Rank 1 waits for rank 0, which waits for rank 2, which is killed: rank 1 must be told, too.
    add_role("lose the end of a chain",
             [](Transport& transport) {
               torch::Tensor tensor = torch::zeros({10});
               transport.barrier();
               if (transport.rank().value == 2) raise(SIGKILL);
               transport.receive(tensor, Rank(transport.rank().value == 0 ? 2u : 0u), 1);
             }) &&
    add_role("rank 1 stops", [](Transport& transport) {
      torch::Tensor tensor = torch::zeros({10});
      if (transport.rank().value == 1) throw std::runtime_error("loss is not a number");
      transport.receive(tensor, Rank(transport.rank().value == 0 ? 2u : 0u), 1);
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

// No connection breaks: silence tells.
const bool kPlanner = add_role(
    "lose the planning rank",
    [](Transport& transport) {
      transport.barrier();
      if (transport.rank().value == 0) raise(SIGKILL);
      transport.fetch("plan/" + std::to_string(transport.rank().value));
    },
    impatient());

// Sends SIGSTOP to all, and SIGCONT some seconds later, from a detached process.
void pause_all(const torch::Tensor& processes, unsigned seconds) {
  if (fork() != 0) return;
  const auto* const ids = processes.const_data_ptr<std::int64_t>();
  for (const int number : {SIGSTOP, SIGCONT}) {
    for (std::int64_t i = 0; i < processes.numel(); ++i) kill(static_cast<pid_t>(ids[i]), number);
    if (number == SIGSTOP) sleep(seconds);
  }
  _exit(0);
}

// A pause longer than the patience of all that waits: for signs of life, the store, messages.
GlooOptions less_patient_than_the_pause() {
  GlooOptions options = impatient();
  options.liveness.store_silence = Seconds(3);
  options.timeout = Seconds(3);
  return options;
}

const bool kPaused = add_role(
    "all are paused",
    [](Transport& transport) {
      const auto group = transport.make_group("all", everyone(transport));
      torch::Tensor own = torch::full({1}, std::int64_t{getpid()}, torch::kInt64);
      torch::Tensor all = torch::zeros({transport.world_size()}, torch::kInt64);
      group->all_gather(own, all, std::vector<std::int64_t>(3, 1));
      const bool first = transport.rank().value == 0;
      if (first) pause_all(all, 4);
      // Waits of every kind, until some time after the pause.
      const Seconds begin = steady_now();
      for (torch::Tensor over = torch::zeros({1}); over.item<float>() == 0;) {
        if (first && steady_now() - begin > Seconds(4.5)) over.fill_(1);
        group->all_reduce(over, Reduction::max);
        transport.barrier();
        if (first) transport.send(own, Rank(1u), 1);
        if (transport.rank().value == 1) transport.receive(own, Rank(0u), 1);
      }
      transport.barrier();
    },
    less_patient_than_the_pause());

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

TEST_SUITE("lost peers") {
  TEST_CASE("rank killed in a collective over direct connections") {
    REQUIRE((kRoles && kFrozen));
    for (const char* name : {"all_reduce", "all_gather", "reduce_scatter", "all_to_all"})
      check_lost("lose rank 2 in " + std::string(name) + " (direct)", 4, 2, -SIGKILL);
  }
  TEST_CASE("rank killed in a collective over Gloo's messages") {
    for (const char* name : {"all_reduce", "all_gather", "reduce_scatter", "all_to_all"})
      check_lost("lose rank 2 in " + std::string(name) + " (messages)", 3, 2, -SIGKILL);
  }
  TEST_CASE("rank killed: the host of the store") { check_lost("lose rank 0", 3, 0, -SIGKILL); }
  TEST_CASE("rank killed: rank 0, while the launcher hosts the store") {
    check_lost("lose rank 0", 3, 0, -SIGKILL, "it gave no sign of life", Seconds(60),
               StoreHost::launcher);
  }
  TEST_CASE("rank killed at the end of a chain of waiting ranks") {
    check_lost("lose the end of a chain", 3, 2, -SIGKILL);
  }
  TEST_CASE("rank killed: the planning rank, while others wait for their parts of the plan") {
    REQUIRE(kPlanner);
    check_lost("lose the planning rank", 3, 0, -SIGKILL);
    check_lost("lose the planning rank", 3, 0, -SIGKILL, "it gave no sign of life", Seconds(60),
               StoreHost::launcher);
  }
  // 30 beats of 0.1 s; the test itself ends the frozen one.
  TEST_CASE("rank alive but without heartbeats") {
    check_lost("rank 1 freezes", 3, 1, -SIGKILL, "it gave no sign of life for 3.0 s", Seconds(12));
  }
  TEST_CASE("all ranks paused for longer than any timeout: no loss") {
    REQUIRE(kPaused);
    for (const RankResult& result : run_rank_processes("all are paused", 3, Seconds(30))) {
      CAPTURE(result.output);
      CHECK(result.exit_status == 0);
    }
  }
  TEST_CASE("an exception on one rank, with its reason") {
    check_lost("rank 1 stops", 3, 1, 3, "it stopped: loss is not a number");
  }
}

}  // namespace polyphony::exec
