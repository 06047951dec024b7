#include "sim/shown/profile_text.h"

namespace polyphony::sim {

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
      return device + " borrows another device's fit, the interval is wider";
    case Footing::foreign_borrowed:
      return stack + " is foreign and " + device +
             " borrows another device's fit, the interval is wider";
  }
  return "";
}

}  // namespace polyphony::sim
