#include "sim/shown/profile_text.h"

#include <cctype>

#include "shared/hardware/devices.h"

namespace polyphony::sim {
namespace {

// Returns the fit of a shipped profile; null: it has none, or is not a shipped one.
const Fit* fit_of(const HardwareProfile& profile) {
  for (const ShippedDevice& shipped : shipped_devices())
    if (default_profile(shipped.device.name) == profile.name && shipped.fit) return &*shipped.fit;
  return nullptr;
}

// Says that there are no measurements of the device, or too few, and which fit is used instead.
// `before` is what else was not measured.
std::string borrowed_text(const HardwareProfile& profile, const std::string& before) {
  const std::string& device = profile.device.name;
  const Fit* fit = fit_of(profile);
  if (fit != nullptr && !fit->calibrated)
    return (before.empty() ? "Too few published measurements of " + device
                           : before + ", and too few of " + device) +
           " were available, its fit rests on " + fit->rows + "; the interval is wider.";
  std::string name = fit == nullptr ? "" : fit->name;
  for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return (before.empty() ? "No published measurement of " + device : before + " or of " + device) +
         " was available, the fit of " + (name.empty() ? "another device" : "the " + name) +
         " is used; the interval is wider.";
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
      return borrowed_text(profile, "");
    case Footing::foreign_borrowed:
      return borrowed_text(profile, "No published measurement of this " + stack);
  }
  return "";
}

}  // namespace polyphony::sim
