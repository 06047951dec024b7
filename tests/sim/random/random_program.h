// Random valid Programs with random CostTables, for tests of laws that hold for all Programs. Equal
// (shape, seed) give equal results. They have 1 to 552 ops, 93 on average. Costs mix random and
// round durations, so that many events coincide; some are zero.
#pragma once

#include <cstdint>

#include "shared/cost/cost.h"
#include "shared/graph/compile.h"
#include "shared/program/program.h"

namespace polyphony::tests {

enum class Shape : std::uint8_t {
  // Training of a pipeline: stages × replicas × tensor ranks × microbatches, GPipe or 1F1B, with
  // gradient reduction and update. Sometimes frozen, with forward passes only.
  pipeline,
  // Frozen, in any order without deadlock: compute ops (alone or as a rendezvous), redistributions
  // between different sets of ranks (also within a rank), collectives, extra waits, several streams
  // per rank.
  graph,
  // As graph, but each rank has at most one transfer in each direction at a time, so that no link
  // ever has two flows.
  serial,
};

struct Case {
  Program program;
  Compiled compiled;
  CostTable costs;
};
Case random_case(Shape shape, std::uint64_t seed);

Program random_program(Shape shape, std::uint64_t seed);
CostTable random_costs(const Program& program, const Compiled& compiled, std::uint64_t seed);

// Sizes of a pipeline, for tests of a specific one.
struct PipelineShape {
  int stages = 1, lanes = 1, tensor = 1, microbatches = 1;
  bool one_f_one_b = true;
  bool trainable = true;
  bool split_rows = false;  // a tensor rank receives rows from two senders
};
Program make_pipeline(const PipelineShape& shape, std::uint64_t seed);

// Returns the bytes that each member of a ring of n sends to the next in random_costs(): 2(n-1)/n
// of the array for an all-reduce, (n-1)/n for others, rounded down.
Bytes ring_bytes(const Collective& collective, std::size_t n);

// Returns the costs with all rates multiplied by k, and all durations and delays divided by k.
CostTable faster(const CostTable& costs, double k);

}  // namespace polyphony::tests
