// Runs cases on queued devices (tests/exec/device_double/).
#include "exec/transport/in_process.h"
#include "tests/exec/device_double/device_world.h"
#include "tests/exec/device_double/queued_transport.h"
#include "tests/exec/parity/parity.h"

namespace polyphony::exec::testing {

Outcome run_queued(const Case& c) {
  Outcome outcome;
  exec::run_in_process(
      world_size(c.layout),
      [&](Transport& inner) {
        const torch::Device device = queued_device(static_cast<int>(inner.rank().value));
        QueuedTransport transport(inner);
        try {
          const Outcome mine = run_case(transport, c, device);
          drain(device);
          if (inner.rank() == Rank(0)) outcome = mine;
        } catch (const std::exception& error) {
          inner.abort(error.what());  // or queued work would wait for data that will not arrive
          wait_idle(device);
          throw;
        }
      },
      Seconds(60));
  return outcome;
}

Outcome run_on_devices(const Case& c) {
  Outcome outcome;
  on_devices(world_size(c.layout), c.name.size() % 2 == 0,
             [&](Transport& transport, torch::Device device) {
               const Outcome mine = run_case(transport, c, device);
               if (transport.rank() == Rank(0)) outcome = mine;
             });
  return outcome;
}

}  // namespace polyphony::exec::testing
