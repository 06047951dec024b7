// The boundaries between stages, and the messages that cross them in one step: a boundary is a
// redistribution of rows between two ownership maps (work items and lanes of the producer, of the
// consumer).
//   Both sides are replicated over their tensor-parallel ranks: each receiver takes its rows from
//   one replica, itself if it is one, else replica (own index mod replicas). Backward uses the same
//   runs with the roles exchanged. Forward rows reach the consumer of a sample in sample order;
//   neighbouring samples that are neighbours on both sides travel as one run.
#pragma once

#include <vector>

#include "shared/plan/assign.h"

namespace polyphony {

struct Boundary {
  std::size_t producer_branch = 0, producer_stage = 0;
  std::size_t consumer_branch = 0, consumer_stage = 0;
  ModuleId producer_module;  // whose output crosses
  bool backward = true;      // gradients come back
};
std::vector<Boundary> make_boundaries(const Model& model, const Plan& plan);

// Rows [from, from+rows) of the producer's work item become rows [to, …) of the consumer's. Work
// items are counted inside their branch.
struct Run {
  std::uint32_t producer_work = 0, consumer_work = 0;
  std::int64_t from = 0, to = 0, rows = 0;
  bool operator==(const Run&) const = default;
};
// By consumer work item, then row.
std::vector<Run> make_runs(const Model& model, const Plan& plan, const Boundary& boundary,
                           const WorkTable& table, const Batch& batch);

// True when the backward of a chunk must produce the gradient of its input.
bool input_grad_wanted(const Model& model, const Chunk& chunk);

}  // namespace polyphony
