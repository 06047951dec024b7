#include "shared/hardware/devices.h"

#include <cctype>

#include "shared/error.h"
#include "shared/hardware/device_file_json.h"
#include "shared/hardware/roofline.h"
#include "shared/hardware/shipped_files.h"

namespace polyphony {
namespace {

std::string lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// Returns the name as it is compared: letters and digits in lower case.
std::string compared(const std::string& name) {
  std::string text;
  for (const char c : lower_case(name))
    if (c != ' ' && c != '-' && c != '_') text += c;
  return text;
}

std::vector<ShippedDevice> read_devices() {
  std::vector<ShippedDevice> devices;
  for (const ShippedFile& file : device_files())
    devices.push_back(read_device_file(file.text, file.path));
  return devices;
}

std::vector<HardwareProfile> make_profiles() {
  std::vector<HardwareProfile> profiles;
  for (const ShippedDevice& shipped : shipped_devices())
    profiles.push_back(roofline_profile(shipped));
  return profiles;
}

}  // namespace

const std::vector<ShippedDevice>& shipped_devices() {
  static const std::vector<ShippedDevice> devices = read_devices();
  return devices;
}

const ShippedDevice* find_device(const std::string& name) {
  for (const ShippedDevice& shipped : shipped_devices()) {
    if (compared(shipped.device.name) == compared(name)) return &shipped;
  }
  return nullptr;
}

std::vector<std::string> device_names() {
  std::vector<std::string> names;
  for (const ShippedDevice& shipped : shipped_devices()) names.push_back(shipped.device.name);
  return names;
}

int default_domain(const ShippedDevice& device, int ranks_per_node) {
  if (device.domain <= ranks_per_node) return 0;
  return device.domain % ranks_per_node == 0 ? device.domain : 0;
}
int default_domain(const std::string& device, int ranks_per_node) {
  const ShippedDevice* shipped = find_device(device);
  return shipped == nullptr ? 0 : default_domain(*shipped, ranks_per_node);
}

const std::vector<HardwareProfile>& shipped_profiles() {
  static const std::vector<HardwareProfile> profiles = make_profiles();
  return profiles;
}

const HardwareProfile* find_profile(const std::string& name) {
  for (const HardwareProfile& profile : shipped_profiles()) {
    if (profile.name == lower_case(name)) return &profile;
  }
  return nullptr;
}

std::vector<std::string> profile_names() {
  std::vector<std::string> names;
  for (const HardwareProfile& profile : shipped_profiles()) names.push_back(profile.name);
  return names;
}

bool is_profile_file(const std::string& name) {
  return name.find('/') != std::string::npos || name.ends_with(".json");
}

std::string default_profile(const std::string& device) { return lower_case(device) + "-roofline"; }

std::optional<HardwareProfile> shipped_profile(const Cluster& cluster) {
  const HardwareProfile* found = find_profile(cluster.profile);
  if (found == nullptr) return std::nullopt;
  HardwareProfile profile = *found;
  profile.device = cluster.device;
  return profile;
}

FlopsPerSecond peak(const Device& device, NumberFormat format) {
  const bool matrix_units = device.bf16 > device.fp32;
  switch (format) {
    case NumberFormat::fp64:
      return device.fp32 / 2.0;
    case NumberFormat::fp32:
      return device.fp32;
    case NumberFormat::tf32:
      return matrix_units ? device.bf16 / 2.0 : FlopsPerSecond();
    case NumberFormat::bf16:
    case NumberFormat::fp16:
      return device.bf16;
    case NumberFormat::fp8:
      return device.fp8;
    case NumberFormat::nvfp4:
      return device.nvfp4;
  }
  return {};
}

}  // namespace polyphony
