// The devices and hardware profiles that ship with the program. Names are not case-sensitive, and
// those of devices may have spaces, hyphens and underscores at any place: "RTX 4090", "rtx4090".
//   A device, such as "H100", comes with default links (per accelerator and direction): inside its
//   node, its share of the node's NICs, to its host's memory, and its share of that memory's rate.
//   Every device has a roofline profile of its own, "h100-roofline": peaks from data sheets,
//   efficiencies from published kernel tables, nothing fitted on the user's machine. "cpu-core" is
//   one core of an unknown x86 machine, deliberately slow.
// The devices are the files of shared/hardware/devices, with their sources. A user's file has the
// same form (shared/hardware/device_file_json.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shared/hardware/cluster.h"
#include "shared/hardware/fits.h"
#include "shared/hardware/hardware.h"

namespace polyphony {

// A product with accelerators of one kind, whose name a scenario may give instead of its figures.
struct NamedNode {
  std::string name;  // "hgx-h100"
  int ranks = 0;
};

// A shipped device, or a user's own.
struct ShippedDevice {
  Device device;
  Link node_link;
  Link fabric_link;
  std::optional<Fit> fit;  // absent: its profile is assumed
  std::string source;
  Watts busy_power{}, idle_power{};
  int domain = 0;                // accelerators that node_link connects, if more than a node
  Link host_link{};              // to the host's memory
  BytesPerSecond host_memory{};  // its share of the node's memory rate, reads plus writes
  std::vector<NamedNode> nodes{};
  std::string file{};                                       // a user's own device: its file
  BytesPerSecond peer_link{};                               // Cluster::peer_link
  CollectiveLibrary collectives = CollectiveLibrary::nccl;  // of devices with a fit
};

const std::vector<ShippedDevice>& shipped_devices();
const ShippedDevice* find_device(const std::string& name);  // null: no such name
std::vector<std::string> device_names();
// Return Cluster::domain for nodes of the device: 72 for GB200 in trays of 4; 0: a node, or no such
// device.
int default_domain(const ShippedDevice& device, int ranks_per_node);
int default_domain(const std::string& device, int ranks_per_node);

const std::vector<HardwareProfile>& shipped_profiles();
const HardwareProfile* find_profile(const std::string& name);  // null: no such name
std::vector<std::string> profile_names();
// Returns whether a scenario or an option names a file rather than a shipped profile or device.
bool is_profile_file(const std::string& name);
// Returns the name of the shipped profile of a shipped device.
std::string default_profile(const std::string& device);
// Returns the shipped profile that a cluster names, with its efficiencies applied to the cluster's
// own device (a roofline also holds for a faster variant of the device). Returns nothing if the
// name is not a shipped one; then it is a path.
std::optional<HardwareProfile> shipped_profile(const Cluster& cluster);

// Returns the dense matrix peak in a format, or zero if the device does not support it. tf32 is
// half of bf16 if the device has matrix units. fp64 is half of
// fp32 (true of A100, H100 and CPUs; A40, H20 and B200 have less).
FlopsPerSecond peak(const Device& device, NumberFormat format);

}  // namespace polyphony
