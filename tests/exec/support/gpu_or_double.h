// The device of tests that only a GPU can pass (exec_test's suites "machine's GPU...").
#pragma once

#include <doctest/doctest.h>
#include <cstdlib>
#include <optional>

#include "exec/device/device.h"
#include "tests/exec/device_double/queued_device.h"

namespace polyphony::exec::testing {

// Returns this machine's GPU. Without one returns the queued device if the environment has
// POLYPHONY_REHEARSE, by which `scripts/first_gpu_hour --rehearse` runs the same tests without a
// GPU; else says that the test is skipped, and returns nothing.
inline std::optional<torch::Device> gpu_or_double() {
  const torch::Device device = choose_device("", LaunchEnv{});
  if (!device.is_cpu()) return device;
  if (std::getenv("POLYPHONY_REHEARSE") != nullptr) return queued_device(0);
  MESSAGE("this machine or this build has no GPU: skipped");
  return std::nullopt;
}

}  // namespace polyphony::exec::testing
