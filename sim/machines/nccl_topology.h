// Reads the topology that NCCL or RCCL found on a node, as it writes it where NCCL_TOPO_DUMP_FILE
// says: CPUs, PCIe devices below them, the NVLinks of each GPU, the ports of each NIC.
//   Rates are the hardware's, not those that NCCL assumes: efficiencies belong to a profile.
// Source: NCCL 2.28, src/graph/xml.cc and topo.cc (elements and attributes); RCCL (xgmi).
#pragma once

#include <string>

#include "shared/units.h"

namespace polyphony::sim {

struct NcclTopology {
  int hosts = 1;               // the file of an NVLink domain has several
  int gpus = 0;                // of a host
  std::string device;          // name of a shipped device; empty: the PCI device is not known
  int compute_capability = 0;  // "90"; 0: not stated
  // NVLinks of an accelerator in one direction; zero: it has none, or their rate is not known.
  BytesPerSecond link{};
  // Accelerators that links join: all of a host, or of all hosts behind switches, or a part of a
  // host where they are joined directly. 0: there are no links.
  int domain = 0;
  BytesPerSecond pcie{};  // the narrowest part of an accelerator's way to its CPU; zero: unknown
  // Ports of the highest rate, of a host; if some are at the PCIe switches of accelerators, only
  // these.
  int nics = 0;
  BytesPerSecond nic{};
  int other_nics = 0;  // ports that are left out: storage, management
};

// Throws InputError with the place in the file.
NcclTopology read_nccl_topology(const std::string& text, const std::string& file);

}  // namespace polyphony::sim
