// The training step that scripts/bench_simulator plays: a decoder of Llama-3.1-70B's widths, 5
// blocks a stage, 1F1B, one sample of 8,192 tokens per microbatch and replica, on nodes of 8 H100.
//   ranks = stages · replicas · tensor, and a multiple of 8: no part of a node stays empty.
// `varied`: samples of 1,024 to 8,192 tokens instead, so that no two work items cost the same.
#pragma once

#include <string>

#include "shared/scenario/scenario.h"

namespace polyphony::tests {

struct BenchShape {
  int stages = 8;
  int replicas = 1;
  int microbatches = 64;  // per replica
  int tensor = 1;
  bool varied = false;
  std::string shard = "none";
  int ranks() const { return stages * replicas * tensor; }
};

Scenario bench_scenario(const BenchShape& shape);

}  // namespace polyphony::tests
