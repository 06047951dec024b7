// The data flow between chunks (shared/plan/plan.h), as rows that are redistributed between ranks.
//
//   A chunk has inputs ("slots"): first the output of the layers before it in its module, then one
//   input per model edge that arrives at it, in the order of the edges. A link joins the chunk that
//   produces rows to the slot that consumes them. Inside a stage the link is local: the rows are
//   passed on without a message.
//
//   Otherwise rows are redistributed from the producer's ranks to the consumer's in runs: rows
//   [from, from + rows) of one work become rows [to, to + rows) of another. The backward pass
//   uses the same runs with the roles exchanged. Neighboring pipeline stages, fan-in and fan-out
//   between data-parallel lanes, image rows on their way to the context-parallel ranks that hold
//   their tokens, and the conditioning of every diffusion stage are all expressed as runs.
//
//   A work (Work in shared/program/program.h) is what one data-parallel lane and one
//   context-parallel rank of a branch processes in one microbatch. Its rows are counted over its
//   tensor-parallel ranks together. Whether each of those holds all rows, or under sequence
//   parallelism a part of them: shared/lower/lower.cpp.
#pragma once

#include <vector>

#include "shared/plan/plan.h"
#include "shared/program/work.h"

namespace polyphony {

struct ChunkInput {
  int edge = -1;           // position in Model::edges; -1: the layers before, in the same module
  ModuleId source{};       // the module that produces the rows
  int source_end = 0;      // number of layers of `source` that have run
  std::int32_t width = 0;  // elements per row
  bool gradient = true;    // the backward pass returns a gradient for it
};
// Returns the number of layers of `edge.from` that have run when its rows leave. The rows of a
// language module leave before the head, whose outputs are logits and not rows of the model.
int edge_end(const Model& model, const Edge& edge);
// Returns the inputs of a chunk by slot.
std::vector<ChunkInput> chunk_inputs(const Model& model, const Chunk& chunk);

struct ChunkPlace {
  std::size_t branch = 0, stage = 0, chunk = 0;
  auto operator<=>(const ChunkPlace&) const = default;
};
struct ChunkLink {
  ChunkPlace producer, consumer;
  std::uint8_t slot = 0;
  ChunkInput input;
  bool local = false;  // same rank, same rows: no message
};
// Returns the links of all chunks of the plan.
std::vector<ChunkLink> make_links(const Model& model, const Plan& plan);

// Numbers of works count within their branch of the table.
struct RowRun {
  std::uint32_t producer_work = 0, consumer_work = 0;
  std::int64_t from = 0, to = 0, rows = 0;
  bool operator==(const RowRun&) const = default;
};
struct RowRuns {
  std::vector<RowRun> runs;         // ordered by consumer work, then row
  std::vector<std::int64_t> taken;  // by consumer work: total rows that it receives
};
// Returns the runs of one link. Where context-parallel ranks of the producer have copies of the
// same rows (Spread::copied), a consumer takes those of the context with its own number, modulo
// theirs. If `table` is one rank's part of a step (shared/step/step_part.h), only the runs between
// works in that part.
RowRuns make_runs(const Model& model, const Plan& plan, const ChunkLink& link,
                  const WorkTable& table, const Batch& batch);

}  // namespace polyphony
