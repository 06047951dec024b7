// What files about machines say of a cluster:
//   NCCL's topology of a node, which it writes where NCCL_TOPO_DUMP_FILE says (nccl_topology.h)
//   Slurm's topology.conf and topology.yaml (slurm_topology.h)
//   the output of nccl-tests: which accelerators, on how many hosts. Its times are of no use here;
//   `polyphony calibrate` fits links to them
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shared/scenario_io/scenario_json.h"
#include "shared/units.h"

namespace polyphony::sim {

// A value, and the file that states it.
template <class T>
struct Stated {
  std::optional<T> value;
  std::string file;
};

struct MachineFacts {
  // As each file writes it: "H100", "NVIDIA H100 80GB HBM3".
  std::vector<Stated<std::string>> devices;
  Stated<int> gpus;  // of a node
  Stated<int> nodes;
  // Hosts that nccl-tests ran on, and the most accelerators that it used on one: there are as many
  // or more.
  Stated<int> tested_nodes, tested_gpus;
  // Accelerators that NVLink or xGMI joins, if not those of a node.
  Stated<int> domain;
  Stated<BytesPerSecond> link;    // of an accelerator inside its node, one direction
  Stated<BytesPerSecond> pcie;    // an accelerator's own, one direction
  Stated<int> nics;               // of a node, for its accelerators
  Stated<BytesPerSecond> nic;     // rate of one
  Stated<int> leaf_nodes;         // nodes under one leaf switch
  Stated<int> block_nodes;        // nodes of one of Slurm's blocks
  std::vector<std::string> read;  // what each file says, one line each
  bool empty() const { return read.empty(); }
};

// Return a rate as people state it of a link between accelerators, "56.25GBps", and of a NIC,
// "400Gbps": for a scenario, and for display.
std::string link_text(BytesPerSecond rate);
std::string nic_text(BytesPerSecond rate);

// Throws InputError for a file that is none of these, that is damaged, or that contradicts another.
MachineFacts read_machine_files(const std::vector<std::string>& files, const LoadText& load);

}  // namespace polyphony::sim
