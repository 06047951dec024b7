// Random valid Programs with random CostTables, for the laws that hold for all of them. Equal
// (shape, seed) give equal results. 1 to 552 ops, 93 on average.
//   Costs mix drawn durations with round ones, so that many events fall together; some are zero.
#pragma once

#include <cstdint>

#include "shared/cost/cost.h"
#include "shared/graph/compile.h"
#include "shared/program/program.h"

namespace polyphony::tests {

enum class Shape : std::uint8_t {
  // Training of a pipeline: stages × lanes × tensor ranks × microbatches, GPipe or 1F1B, gradients
  // reduced, update. Sometimes frozen: forwards only.
  pipeline,
  // Frozen: computes (alone or as a rendezvous), redistributions between unequal sets of ranks (to
  // themselves too), collectives, extra waits, several streams a rank, in any order that cannot
  // deadlock.
  graph,
  // As graph, but each rank has at most one transfer in each direction at a time: no link ever
  // holds two flows.
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

// Sizes of a pipeline, for tests that want a certain one.
struct PipelineShape {
  int stages = 1, lanes = 1, tensor = 1, microbatches = 1;
  bool one_f_one_b = true;
  bool trainable = true;
  bool split_rows = false;  // a tensor rank receives rows from two senders
};
Program make_pipeline(const PipelineShape& shape, std::uint64_t seed);

// What random_costs() lets each member of a ring of n send to the next: 2(n-1)/n of an all-reduce,
// (n-1)/n of the others, rounded down.
Bytes ring_bytes(const Collective& collective, std::size_t n);

// All rates times k, all durations and delays divided by k.
CostTable faster(const CostTable& costs, double k);

}  // namespace polyphony::tests
