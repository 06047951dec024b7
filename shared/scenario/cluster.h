// Where it runs: nodes of accelerators, the links between them, and what they cost.
//   Every rank has an up and a down link to its node's switch (NVLink, PCIe or shared memory) and
//   an up and a down link to the fabric (its NIC, or its share of the node's NICs). A transfer
//   inside a node uses sender up + receiver down of the former, between nodes of the latter. The
//   fabric itself is non-blocking; oversubscription is refused by name until modelled.
// Rates are per direction. Sources of the shipped devices: shared/cost/devices.cpp.
#pragma once

#include <string>
#include <vector>

#include "shared/ids.h"
#include "shared/units.h"

namespace polyphony {

enum class NumberFormat : std::uint8_t { fp64, fp32, tf32, bf16, fp16, fp8, nvfp4 };
const char* name(NumberFormat format);
Bytes size_of(NumberFormat format);  // of one element

// What an accelerator (or CPU core) can do, and how much of it real kernels reach. See
// shared/cost/hardware.h for how it is used.
struct Device {
  std::string name;                      // "H100-SXM"
  FlopsPerSecond fp32{}, bf16{}, fp8{};  // dense matrix peaks; zero: not supported
  BytesPerSecond memory_rate{};
  Bytes memory{};
  bool operator==(const Device&) const = default;
};

struct Link {
  BytesPerSecond rate{};
  Seconds latency{};
  bool operator==(const Link&) const = default;
};

struct Cluster {
  Device device;
  int nodes = 1;
  int ranks_per_node = 1;
  Link node_link;       // between accelerators of one node
  Link fabric_link;     // per accelerator, between nodes
  std::string profile;  // hardware profile: a shipped name, or a path
  double dollars_per_rank_hour = 0;
  bool operator==(const Cluster&) const = default;

  int ranks() const { return nodes * ranks_per_node; }
  int node_of(Rank rank) const { return static_cast<int>(rank.value) / ranks_per_node; }
};

}  // namespace polyphony
