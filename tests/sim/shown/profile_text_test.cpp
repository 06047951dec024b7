// What an answer says of the fit that it rests on.
#include "sim/shown/profile_text.h"

#include <doctest/doctest.h>

#include "shared/hardware/devices.h"
#include "shared/hardware/shipped_certainty.h"

namespace polyphony::sim {

TEST_CASE("a device without rows of its own says whose fit it borrows") {
  const auto said = [](const char* device, const char* stack) {
    HardwareProfile profile = *find_profile(default_profile(device));
    profile.stack = *find_stack(stack);
    state_certainty(profile);
    return footing_text(profile);
  };
  CHECK(said("A40", "megatron-core") == "A40 borrows the A100's fit, the interval is wider");
  CHECK(said("H20", "hf-eager") ==
        "stack hf-eager is foreign and H20 borrows the H100's fit, the interval is wider");
  // H200 has the H100's peaks.
  CHECK(said("H200", "megatron-core").starts_with("fitted to published rows"));
  CHECK(said("B200", "fsdp2").starts_with("stack fsdp2 is foreign"));
}

}  // namespace polyphony::sim
