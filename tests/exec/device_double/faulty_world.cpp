#include "tests/exec/device_double/faulty_world.h"

#include <atomic>
#include <thread>

#include "exec/device/device_calls.h"
#include "exec/gloo/gloo_context.h"
#include "exec/planning/step_data.h"
#include "exec/runner/runner.h"
#include "exec/system/process.h"
#include "exec/transport/forwarding.h"
#include "shared/lower/lower.h"
#include "shared/step/turns.h"
#include "tests/exec/device_double/faulty_family.h"
#include "tests/exec/device_double/queued_backend.h"
#include "tests/exec/device_double/queued_device.h"
#include "tests/exec/parity/parity.h"

namespace polyphony::exec::testing {

namespace {

// Two stages of two tensor-parallel ranks.
Case tp2_pp2() {
  for (const Case& c : parity_cases())
    if (c.name.starts_with("homogeneous TP2 PP2 DP1")) return c;
  throw std::runtime_error("no case of 4 ranks");
}

// Says nothing to anybody when it stops.
class Mute : public ForwardingTransport {
 public:
  using ForwardingTransport::ForwardingTransport;
  void abort(const std::string&) override {}
};

double train(Transport& transport, torch::Device device, FaultyWorld& world) {
  const Case c = tp2_pp2();
  const Scenario scenario = make_scenario(c);
  const auto dataset = make_dataset(c, scenario);
  const Plan plan = make_plan(scenario, c.layout);
  Program now;
  std::atomic<bool> armed{false}, follows{false};
  RunnerOptions options{.device = device};
  options.watch = [&](OpId id, bool starts) {
    const auto* what = std::get_if<Compute>(&now.ops[id.value].what);
    if (!starts || !what) return;
    if (follows.exchange(false) && world.after) world.after(device);
    if (what->phase == Phase::forward || !armed.exchange(false)) return;
    world.began = steady_now();
    world.fault(device);
    follows = true;
  };
  const auto program = [&](std::uint64_t step) {
    const Batch batch = dataset->batch(step);
    return lower(scenario, c.layout, plan, make_queued_step(scenario, c.layout, plan, batch),
                 batch);
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

void run_rank(FaultyWorld& world, Rank rank) {
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

}  // namespace

GlooOptions impatient() {
  GlooOptions options;
  options.liveness.beat = Seconds(0.1);
  options.liveness.grace = Seconds(120);  // the process is that of all ranks
  return options;
}

void run(FaultyWorld& world) {
  {
    std::vector<std::jthread> ranks;
    for (std::size_t rank = 0; rank < kRanks; ++rank)
      ranks.emplace_back([&world, rank] { run_rank(world, Rank(rank)); });
  }
  world.took = (steady_now() - world.began).count();
}

}  // namespace polyphony::exec::testing
