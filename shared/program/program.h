// The Program: what every rank does in one training step, and in which order. One value goes to the
// simulator and to the executor. Durations are never in it: a CostTable beside it
// (shared/cost/cost.h) or a measured Timeline (shared/program/timeline.h) carries them.
//
// Flat arrays; ids are positions in them. `ops` is grouped by rank (rank_ops), and inside a rank
// ordered so that each stream's own order is the order of its ops in the array.
//
// Blocking rules (verify() proves the absence of deadlock relative to them):
//   A stream runs its ops in order, one at a time; an op starts when its stream is free and all of
//   `waits_for` have ended. A message starts when the send op and the receive op that name it have
//   both started; a collective when all members have. A compute op with inner collectives (op.group
//   valid) is a rendezvous of its group. An op ends when all its parts have ended. A message may
//   have both ends on one rank (a colocated bridge keeps some rows where they are): a local
//   hand-over.
// Rows: a boundary buffer is a matrix [rows, width]; a message copies `rows` rows from one buffer
// to another.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "shared/chunk/parameters.h"
#include "shared/data/data.h"
#include "shared/hardware/cluster.h"
#include "shared/ids.h"
#include "shared/model/layout.h"
#include "shared/model/model.h"
#include "shared/rank_list.h"
#include "shared/units.h"
#include "shared/work/work_size.h"

namespace polyphony {

enum class StreamKind : std::uint8_t { compute, collective, send, receive, copy };
enum class BufferKind : std::uint8_t {
  tape,
  boundary,
  boundary_gradient,
  parameter,
  gradient,
  optimizer,
  workspace,
  host  // of a tape, in the memory of the rank's node: not on the device
};
enum class Use : std::uint8_t { allocate, read, write, accumulate, free };

// One rank's ordered queue. Names: "compute", "collective", and for messages the edge and direction
// ("vision>language send"); "to host", "from host".
struct Stream {
  Rank rank{};
  StreamKind kind = StreamKind::compute;
  std::string name;
  bool operator==(const Stream&) const = default;
};

struct Group {
  GroupKind kind = GroupKind::data;
  RankList members;  // in group order
  bool operator==(const Group&) const = default;
};

// An item that an encoder or diffusion module works on: the `item`-th of a sample.
struct WorkItem {
  std::uint32_t sample = 0;  // position in Program::batch
  std::uint32_t item = 0;    // position in Sample::items
  bool operator==(const WorkItem&) const = default;
};
// A work item: some samples, taken together through every module of its branch; with context
// parallelism one rank's share of them. Ids are unique over branches, lanes and contexts.
struct Work {
  std::uint32_t branch = 0;   // which pipeline (Plan::branches)
  std::uint32_t lane = 0;     // data-parallel index
  std::uint32_t context = 0;  // context-parallel index
  std::uint32_t index = 0;    // microbatch
  Range samples{};            // positions in Program::work_samples: of all contexts together
  Range items{};              // positions in Program::work_items: this one's
  Range rows{};  // positions in Program::work_rows: its intervals of the token axis that the
                 // samples make one after another; the whole axis without context parallelism
  bool operator==(const Work&) const = default;
};

struct Buffer {
  Rank rank{};
  BufferKind kind = BufferKind::boundary;
  std::int64_t rows = 0;   // boundary kinds
  std::int32_t width = 0;  // boundary kinds, elements
  Bytes bytes{};
  // Boundary kinds: which input of the consuming chunk it is (shared/plan/links.h).
  std::uint8_t slot = 0;
  bool zeroed = false;  // rows that no message writes are zero
  bool operator==(const Buffer&) const = default;
};
struct BufferUse {
  BufferId buffer{};
  Use use = Use::read;
  bool operator==(const BufferUse&) const = default;
};

// Rows [from_row, from_row + rows) of buffer `from` on `source` become rows [to_row, …) of buffer
// `to` on `destination`.
struct Message {
  Rank source{}, destination{};
  BufferId from{}, to{};
  std::int64_t from_row = 0, to_row = 0, rows = 0;
  Bytes bytes{};
  bool operator==(const Message&) const = default;
};

// The parameters of one chunk on one rank: all but the experts', or the experts'. Their names and
// shapes: shared/chunk/parameters.h.
struct ParamGroup {
  Rank rank{};
  ModuleId module{};
  LayerRange layers{};
  GroupId replicas{};  // whose gradients are summed; invalid when there are no copies. With shards:
                       // the copies of each shard
  bool trainable = true;
  Bytes bytes{};  // of the parameters as held from step to step
  bool experts = false;
  std::int64_t elements = 0;  // of the parameters when they are used
  std::int64_t trained = 0;   // of those, with a gradient
  ShardIndex shard{};
  GroupId tensor{}, context{}, expert{};  // of the chunk's inner collectives; invalid: none
  GroupId partials{};  // those of `tensor`, for sums of partial gradients: a communicator is used
                       // by one stream
  GroupId shards{};    // ranks that divide the optimizer state (and more: Layout) among them
  GroupId tied{};      // ranks that hold a copy of the tied matrix in other layers
  bool operator==(const ParamGroup&) const = default;
};

struct Compute {
  ModuleId module{};
  LayerRange layers{};
  Phase phase = Phase::forward;
  WorkId work{};
  ParamGroupId params{};           // of the chunk on this rank (not the experts')
  Recipe recipe = Recipe::layout;  // what the backward of this work makes again
  bool operator==(const Compute&) const = default;
};
// Sends, or receives, that are launched and finished together. `messages` indexes
// Program::exchange_messages.
struct Exchange {
  bool sends = false;
  Range messages{};
  bool operator==(const Exchange&) const = default;
};
// What a collective op moves, of `params`: gradients over replicas or shards; gradients that are
// partial sums over the tensor-parallel ranks (Parameter::partial); those of a tied matrix;
// parameter values from their shards; or, of no parameters, the world's step scalars {loss sum,
// squared gradient norm, non-finite flag}.
enum class Purpose : std::uint8_t {
  gradients,
  partial_gradients,
  tied_gradients,
  parameters,
  scalars
};
struct Collective {
  CollectiveKind kind = CollectiveKind::all_reduce;
  GroupId group{};
  std::uint32_t sequence = 0;  // how many collectives this group has run before in the step
  ParamGroupId params{};       // invalid: step scalars
  Bytes bytes{};               // of the whole array on each rank
  Purpose purpose = Purpose::gradients;
  bool operator==(const Collective&) const = default;
};
// One optimizer step over all parameter groups of the rank, scaled by the clip factor of the step
// scalars.
struct Update {
  Range params{};
  bool operator==(const Update&) const = default;
};

// What one compute op keeps, to the host's memory after its forward, or back before its backward: out, its
// tape's buffers are read and freed and one of the host's is written; back, the other way round.
struct HostCopy {
  bool to_host = true;
  ModuleId module{};
  LayerRange layers{};
  WorkId work{};
  Bytes bytes{};
  bool operator==(const HostCopy&) const = default;
};

struct Op {
  StreamId stream{};
  GroupId group{};  // compute: the tensor-parallel group its inner collectives run over; invalid
                    // when there are none
  std::variant<Compute, Exchange, Collective, Update, HostCopy> what;
  Range waits_for{};  // positions in Program::waits
  Range buffers{};    // positions in Program::buffer_uses
  bool operator==(const Op&) const = default;
};

struct Program {
  // What the ids refer to.
  Model model;
  Layout layout;
  NumberFormat precision = NumberFormat::fp32;
  // Structure.
  std::uint32_t ranks = 0;
  // Valid: a part, of one rank. It has that rank's ops, the groups that the rank is in, the messages
  // that it sends or receives, the works that it runs or meets, and of the batch their samples.
  Rank only{};
  std::vector<Stream> streams;
  std::vector<Group> groups;
  std::vector<Buffer> buffers;
  std::vector<Message> messages;
  std::vector<ParamGroup> params;
  std::vector<Op> ops;
  std::vector<Range> rank_ops;  // by rank: positions in ops; of a part: one
  std::vector<OpId> waits;
  std::vector<BufferUse> buffer_uses;
  std::vector<MessageId> exchange_messages;
  // Work of this step.
  Batch batch;
  std::vector<Work> works;
  std::vector<WorkSize>
      sizes;  // works × modules; zero where the module is not in the work's branch
  std::vector<std::uint32_t> work_samples;  // positions in batch.samples
  std::vector<WorkItem> work_items;
  std::vector<Interval> work_rows;
  BatchTotals totals;  // of the whole batch

  bool operator==(const Program&) const = default;

  Range ops_of(Rank rank) const { return rank_ops[only.valid() ? 0 : rank.value]; }
  Rank rank_of(const Op& op) const { return streams[op.stream.value].rank; }
  const WorkSize& size_of(WorkId work, ModuleId module) const {
    return sizes[work.value * model.modules.size() + module.value];
  }
};

// The parameters of a group, in stack order.
std::vector<Parameter> parameters_of(const Module& module, const ParamGroup& group);

// 64-bit digest of everything in the Program; ranks compare it before a step.
std::uint64_t hash(const Program& program);
// "F language[0,3) work 2" and the like, for traces and messages.
std::string describe(const Program& program, OpId op);
const char* name(StreamKind kind);
const char* name(Purpose purpose);
const char* name(BufferKind kind);

}  // namespace polyphony
