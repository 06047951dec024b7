// The devices and hardware profiles that ship with the program. Names are not case-sensitive.
//   A device, such as "H100", comes with default links (per accelerator and direction): inside its
//   node, its share of the node's NICs, to its host's memory, and its share of that memory's rate.
//   Every device has a roofline profile of its own, "h100-roofline": peaks from data sheets,
//   efficiencies from published kernel tables, nothing fitted on the user's machine. "cpu-core" is
//   one core of an unknown x86 machine, deliberately slow.
// Sources: shared/hardware/devices.cpp, row by row.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shared/hardware/cluster.h"
#include "shared/hardware/hardware.h"

namespace polyphony {

// The GPU whose published measurements a device's profile is fitted to. H800, H200 and H20 use the
// fit of H100; A40 uses that of A100.
enum class FittedOn : std::uint8_t { a100, h100, b200, gb200, nothing };

struct ShippedDevice {
  Device device;
  Link node_link;
  Link fabric_link;
  FittedOn fitted = FittedOn::nothing;
  std::string source;
  Watts busy_power{}, idle_power{};
  int domain = 0;                // accelerators that node_link connects, if more than a node
  Link host_link{};              // to the host's memory
  BytesPerSecond host_memory{};  // its share of the node's memory rate, reads plus writes
};

const std::vector<ShippedDevice>& shipped_devices();
const ShippedDevice* find_device(const std::string& name);  // null: no such name
std::vector<std::string> device_names();
// Returns Cluster::domain for nodes of the device: 72 for GB200 in trays of 4; 0: a node.
int default_domain(const std::string& device, int ranks_per_node);

const std::vector<HardwareProfile>& shipped_profiles();
const HardwareProfile* find_profile(const std::string& name);  // null: no such name
std::vector<std::string> profile_names();
// Returns whether a scenario or an option names a profile file rather than a shipped profile.
bool is_profile_file(const std::string& name);
// Returns the name of the shipped profile of a shipped device.
std::string default_profile(const std::string& device);
// Returns the shipped profile that a cluster names, with its efficiencies applied to the cluster's
// own device (a roofline also holds for a faster variant of the device). Returns nothing if the
// name is not a shipped one; then it is a path.
std::optional<HardwareProfile> shipped_profile(const Cluster& cluster);

// Returns the dense matrix peak in a format, or zero if the device does not support it. tf32 is
// half of bf16, and nvfp4 is twice fp8, if the device has matrix units for them. fp64 is half of
// fp32 (true of A100, H100 and CPUs; A40, H20 and B200 have less).
FlopsPerSecond peak(const Device& device, NumberFormat format);

}  // namespace polyphony
