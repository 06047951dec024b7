// The training step that scripts/bench_simulator and scripts/bench_growth predict: a decoder with
// the widths of Llama-3.1-70B, 5 blocks per stage, 1F1B, one sample of 8,192 tokens per microbatch
// and replica, on nodes of 8 H100. The number of ranks, stages · replicas · tensor, must be a
// multiple of 8, so that all nodes are full.
//   varied    samples of 1,024 to 8,192 tokens instead, so that no two microbatches cost the same
//   modules   1: the decoder; 2: also a vision encoder; 3: also an audio encoder; 4: also a
//             diffusion module after the decoder. All on the decoder's ranks
//   own       the vision encoder has its own ranks, as many as there are replicas
#pragma once

#include <string>

#include "shared/scenario/scenario.h"

namespace polyphony::tests {

struct BenchShape {
  int stages = 8;
  int replicas = 1;
  int microbatches = 64;  // per replica
  int tensor = 1;
  int blocks = 5;   // per stage
  int samples = 1;  // per microbatch and replica
  int modules = 1;
  bool own = false;
  bool varied = false;
  std::string shard = "none";
  int ranks() const { return stages * replicas * tensor + (own ? replicas : 0); }
};

// Returns the text of the scenario file; parses such a text.
std::string bench_text(const BenchShape& shape);
Scenario read_bench(const std::string& text);
inline Scenario bench_scenario(const BenchShape& shape) { return read_bench(bench_text(shape)); }

}  // namespace polyphony::tests
