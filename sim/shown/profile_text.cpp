#include "sim/shown/profile_text.h"

#include "shared/hardware/devices.h"

namespace polyphony::sim {
namespace {

// Whose fit a shipped profile has.
std::string donor(const HardwareProfile& profile) {
  for (const ShippedDevice& shipped : shipped_devices()) {
    if (default_profile(shipped.device.name) != profile.name) continue;
    switch (shipped.fitted) {
      case FittedOn::a100:
        return "the A100's fit";
      case FittedOn::h100:
        return "the H100's fit";
      case FittedOn::b200:
        return "the B200's fit";
      case FittedOn::gb200:
        return "the GB200's fit";
      case FittedOn::nothing:
        break;
    }
  }
  return "another device's fit";
}

}  // namespace

std::string describe(const HardwareProfile& profile) {
  return "profile " + profile.name + ", stack " + profile.stack.name;
}

std::string footing_text(const HardwareProfile& profile) {
  const std::string stack = "stack " + profile.stack.name, device = profile.device.name;
  switch (profile.certainty.footing) {
    case Footing::stated:
      return "";
    case Footing::known:
      return "fitted to published rows of " + stack + " and of " + device + "'s kind";
    case Footing::foreign:
      return stack + " is foreign: no published row of it was fitted, the interval is wider";
    case Footing::borrowed:
      return device + " borrows " + donor(profile) + ", the interval is wider";
    case Footing::foreign_borrowed:
      return stack + " is foreign and " + device + " borrows " + donor(profile) +
             ", the interval is wider";
  }
  return "";
}

}  // namespace polyphony::sim
