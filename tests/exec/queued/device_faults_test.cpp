// Faults that end a step of ranks with a GPU each. Each fault happens in the second step, or while
// groups are made.
#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "exec/device/device_calls.h"
#include "exec/on_device.h"
#include "exec/transport/announcing.h"
#include "tests/exec/device_double/faulty_world.h"
#include "tests/exec/device_double/queued_backend.h"
#include "tests/exec/device_double/queued_device.h"

namespace polyphony::exec::testing {

namespace {

// Number of threads of this process, without those of the device, which it keeps.
int threads() {
  int count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    count += name != "queued stream";
  }
  return count;
}

// Threads that stay by design in each rank that was notified of a loss (GlooContext::~GlooContext),
// because the process is expected to end.
int left_by_gloo() {
  const int before = threads();
  FaultyWorld idle{.options = impatient()};
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
    FaultyWorld world{.options = impatient()};
    run(world);
    for (const std::string& said : world.said) CHECK(said == "");
    return world.losses[0];
  }();
  return loss;
}

// `fault` happens on the victim, which reports `own`; all others report `others`. Afterwards no
// state of the fault is left.
void check(FaultyWorld& world, const std::string& own, const std::string& others) {
  const double loss = loss_of_two_steps();
  const int left = left_by_gloo(), before = threads();
  run(world);
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    CAPTURE(rank);
    CHECK_MESSAGE(world.said[rank].find(Rank(rank) == kVictim ? own : others) != std::string::npos,
                  world.said[rank]);
  }
  CHECK(world.took < 10);
  for (int looks = 0; looks < 50 && threads() - before > left;
       ++looks)  // some threads are about to end
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  if (!world.vanishes) CHECK(threads() - before <= left);
  FaultyWorld fresh{.options = impatient()};
  run(fresh);
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    CHECK(fresh.said[rank] == "");
    CHECK(fresh.losses[rank] == loss);
  }
}

// Rank 0 queues a sum to which rank 1 does not come, and waits inside an op until its device is
// done. Returns what the rank reports.
std::string stuck_inside(FaultyWorld& world, Rank rank) {
  const torch::Device device = queued_device(static_cast<int>(rank.value));
  LaunchEnv launch;
  launch.rank = rank;
  launch.world_size = launch.local_world_size = 2;
  launch.local_rank = static_cast<int>(rank.value);
  launch.master_port = world.port;
  auto gloo = connect_gloo(launch, world.options);
  const DeviceCalls calls = device_calls(
      *gloo, device,
      [&](const auto&, const std::string& name, int index, int size) {
        return queued_family(std::to_string(world.port) + name, index, size, device, Seconds(30));
      },
      queued_together);
  DeviceTransport transport(std::move(gloo), calls, false);
  const std::vector<Rank> both{Rank(0), Rank(1)};
  announce(transport, {{"both", both}});
  const auto group = transport.make_group("both", both);
  std::string text;
  try {
    if (rank == Rank(1)) {
      std::this_thread::sleep_for(std::chrono::seconds(4));  // longer than rank 0 is patient
      transport.barrier();
    } else {
      transport.watch([] { return 1; }, [] { return " (begun on rank 0: all-reduce)"; });
      torch::Tensor one = torch::ones({1}, device);
      group->all_reduce(one, Reduction::sum);
      wait_idle(device);
      c10::Event done(device.type());
      done.record(default_stream(device));
      transport.await(done);
    }
  } catch (const std::exception& error) {
    text = error.what();
    transport.abort(text);
  }
  transport.watch({}, {});
  calls.abort();
  wait_idle(device);
  return text;
}

}  // namespace

TEST_SUITE("queued device") {
  TEST_CASE(
      "a rank that stops while another waits for it in a collective is named with its reason") {
    FaultyWorld world{.options = impatient(), .fault = [](torch::Device) {
                        throw std::runtime_error("planted\nin lines");
                      }};
    check(world, "planted", "lost rank 1: it stopped: planted (begun on rank ");
  }
  TEST_CASE("a rank that stops while others connect to it is named with its reason") {
    FaultyWorld world{.options = impatient(),
                      .fault = [](torch::Device) { throw std::runtime_error("planted"); },
                      .step = 0};
    check(world, "planted", "lost rank 1: it stopped: planted");
  }
  TEST_CASE("a rank that stops while groups are made is named with its reason") {
    for (const std::string making : {"the world", "messages from"}) {
      CAPTURE(making);
      FaultyWorld world{.options = impatient(),
                        .fault = [](torch::Device) { throw std::runtime_error("planted"); },
                        .making = making};
      check(world, "planted", "lost rank 1: it stopped: joining");
    }
  }
  TEST_CASE("a rank lost while groups are made is reported by all others") {
    FaultyWorld world{.options = impatient(),
                      .fault = [](torch::Device) { throw LostPeer(Rank(), "gone"); },
                      .making = "the world",
                      .vanishes = true};
    check(world, "gone", "lost rank 1: it gave no sign of life for");
  }
  TEST_CASE("a live rank that does not come to make groups causes a timeout that names it") {
    for (const bool at_meeting : {false, true}) {
      FaultyWorld world{.options = impatient(), .making = "the world", .at_meeting = at_meeting};
      world.options.timeout = Seconds(4);
      world.fault = [&](torch::Device) { world.survivors.wait(); };
      check(world, "", at_meeting ? "not connected, missing rank 1" : "joining group tensor");
    }
  }
  TEST_CASE("a kernel that fails stops its rank, and the others with its reason") {
    FaultyWorld world{.options = impatient(), .fault = [](torch::Device device) {
                        queue_on_current(device, [] { throw std::runtime_error("a bad address"); });
                      }};
    check(world, "a bad address", "lost rank 1: it stopped: a bad address");
  }
  TEST_CASE("a kernel that fails while the host only waits also stops all ranks") {
    FaultyWorld world{.options = impatient(), .fault = [](torch::Device device) {
                        queue_on_current(device, [] {
                          std::this_thread::sleep_for(std::chrono::seconds(2));
                          throw std::runtime_error("a bad address");
                        });
                      }};
    check(world, "a bad address", "lost rank 1: it stopped: a bad address");
  }
  TEST_CASE(
      "a group's own error while its kernel waits for ever is reported with the group's message") {
    for (const std::string group : {"tensor", "messages from"}) {
      CAPTURE(group);
      FaultyWorld world{.options = impatient(), .fault = [&](torch::Device device) {
                          break_group(device, group, "NCCL: unhandled system error; planted");
                        }};
      check(world, group, "lost rank 1: it stopped: " + group);
      for (const std::string& said : world.said)
        CHECK_MESSAGE(said.find(": NCCL: unhandled system error; planted (begun on rank 1 ") !=
                          std::string::npos,
                      said);
    }
  }
  TEST_CASE("a group's own error is reported while the host blocks in queuing kernels") {
    FaultyWorld world{.options = impatient(),
                      .fault =
                          [](torch::Device device) {
                            break_group(device, "tensor", "NCCL: unhandled system error; planted");
                          },
                      .after = [](torch::Device device) { wait_idle(device); }};
    check(world, "tensor", "lost rank 1: it stopped: tensor");
    for (const std::string& said : world.said)
      CHECK_MESSAGE(said.find(": NCCL: unhandled system error; planted") != std::string::npos,
                    said);
  }
  TEST_CASE("a host that stays inside an op, in the device's library, ends all ranks") {
    FaultyWorld world{.options = impatient()};
    world.options.timeout = Seconds(2);
    std::array<std::string, 2> said;
    {
      std::vector<std::jthread> ranks;
      for (std::size_t rank = 0; rank < said.size(); ++rank)
        ranks.emplace_back([&, rank] { said[rank] = stuck_inside(world, Rank(rank)); });
    }
    for (const std::string& text : said) {
      CHECK_MESSAGE(
          text.find("the host has been inside one op for 2.5 s, where a call of the device's "
                    "library does not return (begun on rank 0: all-reduce)") != std::string::npos,
          text);
    }
  }
  TEST_CASE("a peer that is lost while the host is inside the device's library ends the host") {
    FaultyWorld world{.options = impatient(),
                      .fault = [](torch::Device device) { break_group(device, "tensor", ""); },
                      .after = [](torch::Device device) { wait_idle(device); }};
    world.options.timeout = Seconds(4);
    run(world);
    for (const std::string& said : world.said)
      CHECK_MESSAGE(said.find("it did not finish in time") != std::string::npos, said);
    CHECK(world.took < 10);
  }
  TEST_CASE("a rank lost in the middle of a step is reported by all others") {
    FaultyWorld world{.options = impatient(),
                      .fault = [](torch::Device) { throw LostPeer(Rank(), "gone"); },
                      .vanishes = true};
    check(world, "gone", "lost rank 1: it gave no sign of life for 3.0 s (begun on rank ");
  }
  TEST_CASE("a live rank that does not come causes a timeout that names the waiting ops") {
    FaultyWorld world{.options = impatient()};
    world.options.timeout = Seconds(4);
    world.fault = [&](torch::Device) { world.survivors.wait(); };
    check(world, "", "waiting for the GPU: it did not finish in time (begun on rank ");
  }
}

}  // namespace polyphony::exec::testing
