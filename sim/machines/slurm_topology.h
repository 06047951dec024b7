// Reads Slurm's topology.conf (switches or blocks) and topology.yaml: how many nodes share a leaf
// switch or a block. Neither file has rates.
// Source: Slurm's documentation of topology.conf and topology.yaml.
#pragma once

#include <string>

namespace polyphony::sim {

struct SlurmTopology {
  int nodes = 0;
  int leaves = 0;       // leaf switches; 0: the file has none
  int leaf_nodes = 0;   // nodes under most of them
  int switches = 0;     // all switches
  int blocks = 0;       // 0: the file has none
  int block_nodes = 0;  // nodes of most blocks
};

// Throws InputError with "file:line" (topology.conf) or the place of the value (topology.yaml).
SlurmTopology read_slurm_topology(const std::string& text, const std::string& file);

// Returns the number of names in a list of hosts, "srv[01-16,18],login". Throws InputError that
// names `file`.
int hosts_in(const std::string& list, const std::string& file);

}  // namespace polyphony::sim
