#include "sim/shown/profile_text.h"

namespace polyphony::sim {

std::string describe(const HardwareProfile& profile) {
  return "profile " + profile.name + ", stack " + profile.stack.name;
}

}  // namespace polyphony::sim
