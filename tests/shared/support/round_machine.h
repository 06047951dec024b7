// Clusters and devices with round numbers, for costs calculated by hand.
#pragma once

#include "shared/hardware/hardware.h"

namespace polyphony::examples {

// 2 nodes of 4 devices; 100 GB/s and 1 us within a node, 10 GB/s and 5 us between nodes.
inline Cluster two_nodes() {
  Cluster cluster;
  cluster.nodes = 2;
  cluster.ranks_per_node = 4;
  cluster.node_link = {BytesPerSecond(100e9), Seconds(1e-6)};
  cluster.fabric_link = {BytesPerSecond(10e9), Seconds(5e-6)};
  return cluster;
}

// 1 TFLOP/s fp32, 10 bf16, 20 fp8; 1 TB/s; every efficiency 1, no launch overhead.
inline HardwareProfile plain() {
  HardwareProfile profile;
  profile.device = {"plain",
                    FlopsPerSecond(1e12),
                    FlopsPerSecond(10e12),
                    FlopsPerSecond(20e12),
                    BytesPerSecond(1e12),
                    Bytes(1 << 30)};
  profile.gemm_efficiency = profile.attention_efficiency = profile.memory_efficiency = 1;
  profile.early_attention_efficiency = 1;
  return profile;
}

}  // namespace polyphony::examples
