// What an answer prints about the measurements that it rests on.
#include "sim/shown/profile_text.h"

#include <doctest/doctest.h>

#include "shared/hardware/devices.h"
#include "shared/hardware/shipped_certainty.h"

namespace polyphony::sim {

TEST_CASE("a device without measurements of its own names the device whose fit it uses") {
  const auto said = [](const char* device, const char* stack) {
    HardwareProfile profile = *find_profile(default_profile(device));
    profile.stack = *find_stack(stack);
    state_certainty(profile);
    return footing_text(profile);
  };
  CHECK(
      said("A40", "megatron-core") ==
      "No published measurement of A40 was available, the fit of the A100 is used; the interval is "
      "wider.");
  CHECK(
      said("H20", "hf-eager") ==
      "No published measurement of this software stack (hf-eager) or of H20 was available, the fit "
      "of the H100 is used; the interval is wider.");
  // Kernels of the MI300X were measured, but few steps.
  CHECK(said("MI325X", "megatron-core") ==
        "Too few published measurements of MI325X were available, its fit rests on kernel times of "
        "MI300X and MI325X; the interval is wider.");
  CHECK(said("MI300X", "hf-eager") ==
        "No published measurement of this software stack (hf-eager), and too few of MI300X were "
        "available, its fit rests on kernel times of MI300X and MI325X; the interval is wider.");
  // H200 has the H100's peaks.
  CHECK(said("H200", "megatron-core") ==
        "Fitted to published measurements of this software stack (megatron-core) on devices like "
        "H200.");
  CHECK(said("B200", "fsdp2") ==
        "No published measurement of this software stack (fsdp2) was available; the interval is "
        "wider.");
}

}  // namespace polyphony::sim
