#include "sim/shown/profile_text.h"

#include <cctype>

#include "shared/hardware/devices.h"

namespace polyphony::sim {
namespace {

// The GPU generation that a shipped profile's fit was made for.
std::string fitted_device(const HardwareProfile& profile) {
  for (const ShippedDevice& shipped : shipped_devices()) {
    if (default_profile(shipped.device.name) != profile.name || !shipped.fit) continue;
    std::string name = shipped.fit->name;
    for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return "the " + name;
  }
  return "another device";
}

}  // namespace

std::string describe(const HardwareProfile& profile) {
  return "profile " + profile.name + ", stack " + profile.stack.name;
}

std::string footing_text(const HardwareProfile& profile) {
  const std::string stack = "software stack (" + profile.stack.name + ")",
                    device = profile.device.name;
  switch (profile.certainty.footing) {
    case Footing::stated:
      return "";
    case Footing::known:
      return "Fitted to published measurements of this " + stack + " on devices like " + device +
             ".";
    case Footing::foreign:
      return "No published measurement of this " + stack + " was available; the interval is wider.";
    case Footing::borrowed:
      return "No published measurement of " + device + " was available, the fit of " +
             fitted_device(profile) + " is used; the interval is wider.";
    case Footing::foreign_borrowed:
      return "No published measurement of this " + stack + " or of " + device +
             " was available, the fit of " + fitted_device(profile) +
             " is used; the interval is wider.";
  }
  return "";
}

}  // namespace polyphony::sim
