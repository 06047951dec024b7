// What ends a step of ranks with a GPU each: the whole runner over Gloo and groups of the queued device, with what
// exec/network/device_calls.h does of its own. Ranks are threads here; each fault comes in the second step, or as groups are made.
#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <latch>
#include <thread>

#include "exec/network/device_calls.h"
#include "exec/network/gloo.h"
#include "exec/network/gloo_context.h"
#include "exec/network/sockets.h"
#include "exec/runner/runner.h"
#include "exec/runner/step_data.h"
#include "exec/system/process.h"
#include "exec/transport/forwarding.h"
#include "shared/plan/lower.h"
#include "tests/exec/parity/parity.h"
#include "tests/exec/queued/faulty_family.h"
#include "tests/exec/queued/queued_backend.h"

namespace polyphony::exec::testing {

namespace {

constexpr int kRanks = 4;
constexpr Rank kVictim(1);

// Two stages of two tensor-parallel ranks.
Case tp2_pp2() {
  for (const Case& c : parity_cases())
    if (c.name.starts_with("homogeneous TP2 PP2 DP1")) return c;
  throw std::runtime_error("no case of 4 ranks");
}

using Fault = std::function<void(torch::Device)>;  // on the thread of the victim's op

struct World {
  GlooOptions options;
  Fault fault = {};  // before the victim's first backward of a step
  std::uint64_t step = 1;
  std::string making =
      {};  // not in a step, but at the victim's first split of a family with this in its name
  bool at_meeting = false;  // before it comes to that family
  bool vanishes = false;  // the victim says nothing at its end, and gives no sign of life any more
  std::uint16_t port = listen_at("127.0.0.1").port;
  std::latch survivors{kRanks - 1};
  // What ranks end with: what they threw, and the last loss.
  std::array<std::string, kRanks> said{};
  std::array<double, kRanks> losses{};
  Seconds began{};  // the fault
  double took = 0;  // from then on, seconds; until the last has ended
};

GlooOptions impatient() {
  GlooOptions options;
  options.liveness.beat = Seconds(0.1);
  options.liveness.grace = Seconds(120);  // the process is that of all ranks
  return options;
}

// Says nothing to anybody when it stops.
class Mute : public ForwardingTransport {
 public:
  using ForwardingTransport::ForwardingTransport;
  void abort(const std::string&) override {}
};

double train(Transport& transport, torch::Device device, World& world) {
  const Case c = tp2_pp2();
  const Scenario scenario = make_scenario(c);
  const auto dataset = make_dataset(c, scenario);
  const Plan plan = make_plan(scenario, c.layout);
  Program now;
  std::atomic<bool> armed{false};
  RunnerOptions options{.device = device};
  options.watch = [&](OpId id, bool starts) {
    const auto* what = std::get_if<Compute>(&now.ops[id.value].what);
    if (!starts || !what || what->phase == Phase::forward || !armed.exchange(false)) return;
    world.began = steady_now();
    world.fault(device);
  };
  const auto program = [&](std::uint64_t step) {
    return lower(scenario, c.layout, plan, dataset->batch(step));
  };
  now = program(0);
  Runner runner(transport, scenario, now, options);
  double loss = 0;
  for (std::uint64_t step = 0; step < 2; ++step) {
    now = program(step);
    const auto inputs =
        pack_inputs(now, transport.rank(), *dataset, {scenario.data.seed, step}, device);
    armed =
        step == world.step && transport.rank() == kVictim && world.fault && world.making.empty();
    loss = runner
               .train_step(
                   now, [&](WorkId work) -> const WorkInput& { return inputs.at(work); }, 1e-3)
               .loss;
  }
  return loss;
}

void run_rank(World& world, Rank rank) {
  const torch::Device device = queued_device(static_cast<int>(rank.value));
  LaunchEnv launch;
  launch.rank = rank;
  launch.world_size = launch.local_world_size = kRanks;
  launch.local_rank = static_cast<int>(rank.value);
  launch.master_port = world.port;
  auto gloo = connect_gloo(launch, world.options);
  const auto context = context_of(*gloo);
  const DeviceCalls calls = device_calls(
      *gloo, device,
      [&](const auto&, const std::string& name, int index, int size) -> FamilyPointer {
        const bool faulty = rank == kVictim && !world.making.empty() &&
                            name.find(world.making) != std::string::npos;
        const auto fault = [&world, device] {
          world.began = steady_now();
          world.fault(device);
        };
        if (faulty && world.at_meeting) fault();
        const auto family =
            queued_family(std::to_string(world.port) + name, index, size, device, Seconds(30));
        if (!faulty) return family;
        return std::make_shared<FaultyFamily>(family, fault);
      },
      queued_together);
  auto transport = std::make_unique<DeviceTransport>(std::move(gloo), calls, false);
  try {
    Mute mute(*transport);
    Transport& heard =
        rank == kVictim && world.vanishes ? static_cast<Transport&>(mute) : *transport;
    world.losses.at(rank.value) = train(heard, device, world);
  } catch (const std::exception& error) {
    world.said.at(rank.value) = error.what();
    if (rank != kVictim || !world.vanishes) transport->abort(error.what());
  }
  calls.abort();  // its process ends, and what its GPU has to do
  wait_idle(device);
  if (rank != kVictim) return world.survivors.count_down();
  if (!world.vanishes) return;
  context->liveness.reset();
  world.survivors.wait();
  static std::vector<DeviceTransport*>
      vanished;  // with open sockets, as of a machine without power
  vanished.push_back(transport.release());
}

void run(World& world) {
  {
    std::vector<std::jthread> ranks;
    for (std::size_t rank = 0; rank < kRanks; ++rank)
      ranks.emplace_back([&world, rank] { run_rank(world, Rank(rank)); });
  }
  world.took = (steady_now() - world.began).count();
}

// Of this process, but for the device's own, which it keeps.
int threads() {
  int count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    count += name != "queued stream";
  }
  return count;
}

// Threads that Gloo leaves behind by design in each rank that was told of a loss (GlooContext::~GlooContext):
// a process is left then.
int left_by_gloo() {
  const int before = threads();
  World idle{.options = impatient()};
  {
    std::vector<std::jthread> ranks;
    for (std::size_t rank = 0; rank < kRanks; ++rank)
      ranks.emplace_back([&idle, rank] {
        LaunchEnv launch;
        launch.rank = Rank(rank);
        launch.world_size = launch.local_world_size = kRanks;
        launch.master_port = idle.port;
        const auto gloo = connect_gloo(launch, idle.options);
        try {
          if (launch.rank == kVictim) gloo->abort("a reason");
          gloo->barrier();
        } catch (const LostPeer&) {
        }
      });
  }
  return threads() - before;
}

const double& loss_of_two_steps() {
  static const double loss = [] {
    World world{.options = impatient()};
    run(world);
    for (const std::string& said : world.said) CHECK(said == "");
    return world.losses[0];
  }();
  return loss;
}

// `fault` befalls the victim, which says `own`; all others say `others`. Then all is as if nothing had been.
void check(World& world, const std::string& own, const std::string& others) {
  const double loss = loss_of_two_steps();
  const int left = left_by_gloo(), before = threads();
  run(world);
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    CAPTURE(rank);
    CHECK_MESSAGE(world.said[rank].find(Rank(rank) == kVictim ? own : others) != std::string::npos,
                  world.said[rank]);
  }
  CHECK(world.took < 10);
  for (int looks = 0; looks < 50 && threads() - before > left; ++looks)  // some are about to end
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  if (!world.vanishes) CHECK(threads() - before <= left);
  World fresh{.options = impatient()};
  run(fresh);
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    CHECK(fresh.said[rank] == "");
    CHECK(fresh.losses[rank] == loss);
  }
}

}  // namespace

TEST_SUITE("queued device") {
  TEST_CASE(
      "a rank that stops while another waits for it in a collective is named with its reason") {
    World world{.options = impatient(),
                .fault = [](torch::Device) { throw std::runtime_error("planted\nin lines"); }};
    check(world, "planted", "lost rank 1: it stopped: planted (begun on rank ");
  }
  TEST_CASE("so is one that stops while others connect to it") {
    World world{.options = impatient(),
                .fault = [](torch::Device) { throw std::runtime_error("planted"); },
                .step = 0};
    check(world, "planted", "lost rank 1: it stopped: planted");
  }
  TEST_CASE("a rank that stops while groups are made is named with its reason") {
    for (const std::string making : {"the world", "messages of"}) {
      CAPTURE(making);
      World world{.options = impatient(),
                  .fault = [](torch::Device) { throw std::runtime_error("planted"); },
                  .making = making};
      check(world, "planted", "lost rank 1: it stopped: joining");
    }
  }
  TEST_CASE("one that is gone while groups are made is missed by all others") {
    World world{.options = impatient(),
                .fault = [](torch::Device) { throw LostPeer(Rank(), "gone"); },
                .making = "the world",
                .vanishes = true};
    check(world, "gone", "lost rank 1: it gave no sign of life for");
  }
  TEST_CASE("one that lives and does not come to make groups is a time-out, with its number") {
    for (const bool at_meeting : {false, true}) {
      World world{.options = impatient(), .making = "the world", .at_meeting = at_meeting};
      world.options.timeout = Seconds(4);
      world.fault = [&](torch::Device) { world.survivors.wait(); };
      check(world, "", at_meeting ? "not connected, for want of rank 1" : "joining group tensor");
    }
  }
  TEST_CASE("a kernel that fails stops its rank, and the others with its reason") {
    World world{.options = impatient(), .fault = [](torch::Device device) {
                  queue_on_current(device, [] { throw std::runtime_error("a bad address"); });
                }};
    check(world, "a bad address", "lost rank 1: it stopped: a bad address");
  }
  TEST_CASE("so does one that fails when all is queued, and the host only waits") {
    World world{.options = impatient(), .fault = [](torch::Device device) {
                  queue_on_current(device, [] {
                    std::this_thread::sleep_for(std::chrono::seconds(2));
                    throw std::runtime_error("a bad address");
                  });
                }};
    check(world, "a bad address", "lost rank 1: it stopped: a bad address");
  }
  TEST_CASE(
      "a group that goes wrong by itself while its kernel waits for ever is named with its words") {
    for (const std::string group : {"tensor", "messages of"}) {
      CAPTURE(group);
      World world{.options = impatient(), .fault = [&](torch::Device device) {
                    break_group(device, group, "NCCL: unhandled system error; planted");
                  }};
      const std::string words = "waiting for the GPU: " + group;
      check(world, words, "lost rank 1: it stopped: " + words);
      for (const std::string& said : world.said)
        CHECK_MESSAGE(said.find(": NCCL: unhandled system error; planted (begun on rank 1 ") !=
                          std::string::npos,
                      said);
    }
  }
  TEST_CASE("a rank that is gone in mid-step is missed by all others") {
    World world{.options = impatient(),
                .fault = [](torch::Device) { throw LostPeer(Rank(), "gone"); },
                .vanishes = true};
    check(world, "gone", "lost rank 1: it gave no sign of life for 3.0 s (begun on rank ");
  }
  TEST_CASE("a rank that lives and does not come is a time-out, named by what waits") {
    World world{.options = impatient()};
    world.options.timeout = Seconds(4);
    world.fault = [&](torch::Device) { world.survivors.wait(); };
    check(world, "", "waiting for the GPU: not ended (begun on rank ");
  }
}

}  // namespace polyphony::exec::testing
