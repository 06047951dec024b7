// The training step that scripts/bench_simulator and scripts/bench_growth play: a decoder of
// Llama-3.1-70B's widths, 5 blocks a stage, 1F1B, one sample of 8,192 tokens per microbatch and
// replica, on nodes of 8 H100.
//   ranks = stages · replicas · tensor, and a multiple of 8: no part of a node stays empty.
// `varied`: samples of 1,024 to 8,192 tokens instead, so that no two work items cost the same.
// `modules`: the decoder; a vision encoder before it; an audio encoder too; a diffusion module after
// it. On the decoder's ranks; `own`: the vision encoder on as many ranks of its own as replicas.
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

// The scenario's text; its scenario, read.
std::string bench_text(const BenchShape& shape);
Scenario read_bench(const std::string& text);
inline Scenario bench_scenario(const BenchShape& shape) { return read_bench(bench_text(shape)); }

}  // namespace polyphony::tests
