// What flows between chunks. A chunk has inputs ("slots"): first what the layers before it in its
// module left, then what comes over the model's edges, in the order of the edges. A link joins the
// chunk that makes something to the slot that takes it. Inside a stage it is a local hand-over;
// else rows are redistributed from the producer's ranks to the consumer's, by runs: rows [from,
// from + n) of one work item become rows [to, …) of another. Backward uses the same runs with the
// roles exchanged. Pipeline neighbours, fan-in and fan-out between data-parallel lanes, image rows
// on their way to the context-parallel ranks that hold their tokens, conditioning of every
// diffusion stage: all are runs.
//   Rows of a work item are counted over its tensor-parallel ranks together; how those divide them
//   (all hold all, or under sequence parallelism each its own): shared/lower/lower.cpp.
#pragma once

#include <vector>

#include "shared/plan/plan.h"
#include "shared/program/work.h"

namespace polyphony {

struct ChunkInput {
  int edge = -1;           // position in Model::edges; -1: the layers before
  ModuleId source{};       // whose output it is
  int source_end = 0;      // layers of `source` that have run
  std::int32_t width = 0;  // elements of a row
  bool gradient = true;    // the backward returns its gradient
};
// Layers of `edge.from` that have run when its rows leave. Out of a language module they leave
// before the head, which makes no rows.
int edge_end(const Model& model, const Edge& edge);
std::vector<ChunkInput> chunk_inputs(const Model& model, const Chunk& chunk);

struct ChunkPlace {
  std::size_t branch = 0, stage = 0, chunk = 0;
  auto operator<=>(const ChunkPlace&) const = default;
};
struct ChunkLink {
  ChunkPlace producer, consumer;
  std::uint8_t slot = 0;
  ChunkInput input;
  bool local = false;  // same rank, same rows
};
std::vector<ChunkLink> make_links(const Model& model, const Plan& plan);

// Work items are counted inside their branch of the table.
struct RowRun {
  std::uint32_t producer_work = 0, consumer_work = 0;
  std::int64_t from = 0, to = 0, rows = 0;
  bool operator==(const RowRun&) const = default;
};
struct RowRuns {
  std::vector<RowRun> runs;         // by consumer work item, then row
  std::vector<std::int64_t> taken;  // by consumer work item: rows that it takes in all
};
// Of a part of a table (shared/step/step_part.h): the runs between works that it has.
RowRuns make_runs(const Model& model, const Plan& plan, const ChunkLink& link,
                  const WorkTable& table, const Batch& batch);

}  // namespace polyphony
