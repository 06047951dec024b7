// The Program: every op that every rank runs in one training step, with its dependencies, buffers
// and messages. The simulator and the executor read the same Program. It contains no durations:
// these are in a separate CostTable (shared/cost/cost.h) or a measured Timeline
// (shared/program/timeline.h).
//
// The Program consists of flat arrays; ids are positions in them. `ops` is grouped by rank
// (rank_ops). Inside a rank, a stream runs its ops in the order in which they appear.
//
// Blocking rules (verify() proves that there is no deadlock under them):
//   - A stream runs its ops in order, one at a time. An op starts when its stream is free and all
//     ops of `waits_for` have ended. It ends when all its parts have ended.
//   - A message starts when the send op and the receive op that name it have both started.
//   - A collective starts when all members of its group have started it. A compute op whose
//     Op::group is valid starts when all ranks of that group (its cell) have started it.
//   - A message whose two ends are on one rank is a local copy. Colocated modules use it for rows
//     that stay on their rank.
//
// A boundary buffer, which holds the rows between two chunks, is a matrix [rows, width]. A message
// copies `rows` rows from one buffer to another.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "shared/chunk/parameters.h"
#include "shared/data/data.h"
#include "shared/enum_names.h"
#include "shared/hardware/cluster.h"
#include "shared/ids.h"
#include "shared/model/layout.h"
#include "shared/model/model.h"
#include "shared/rank_list.h"
#include "shared/units.h"
#include "shared/work/work_size.h"

namespace polyphony {

enum class StreamKind : std::uint8_t { compute, collective, send, receive, copy };
constexpr auto names(StreamKind) {
  return names_of<StreamKind>("compute", "collective", "send", "receive", "copy");
}
enum class BufferKind : std::uint8_t {
  tape,      // activations that a forward pass saves for the backward pass
  boundary,  // input rows of a chunk
  boundary_gradient,
  parameter,
  gradient,
  optimizer,
  workspace,
  host  // saved activations in the memory of the rank's node, not on the device
};
constexpr auto names(BufferKind) {
  return names_of<BufferKind>("tape", "boundary", "boundary_gradient", "parameter", "gradient",
                              "optimizer", "workspace", "host");
}
enum class Use : std::uint8_t { allocate, read, write, accumulate, free };

// An ordered queue of one rank's ops. Names: "compute", "collective", "to host", "from host"; a
// stream of messages is named after the edge and the direction ("vision>language send").
struct Stream {
  Rank rank{};
  StreamKind kind = StreamKind::compute;
  std::string name;
  bool operator==(const Stream&) const = default;
};

// Ranks that run collectives together.
struct Group {
  GroupKind kind = GroupKind::data;
  RankList members;  // in group order
  bool operator==(const Group&) const = default;
};

// One item (image, audio clip or latent) of a Work of an encoder or diffusion module.
struct ItemOfWork {
  std::uint32_t sample = 0;  // position in Program::batch
  std::uint32_t item = 0;    // position in Sample::items
  bool operator==(const ItemOfWork&) const = default;
};
// What one data-parallel lane and one context-parallel rank of a branch (a module and its
// projectors) processes in one microbatch: some samples or items that go through the modules of the
// branch together. With context parallelism it holds that rank's share of their rows. All
// tensor-parallel ranks of a lane and context-parallel rank have the same Works.
//   A WorkId is a position in Program::works and names one Work among those of all branches, lanes
//   and context-parallel ranks. An Action (shared/schedule/action.h) states a branch and a
//   Work::index only; lane and context-parallel rank are those of the rank that runs it.
struct Work {
  std::uint32_t branch = 0;   // position in Plan::branches
  std::uint32_t lane = 0;     // data-parallel index
  std::uint32_t context = 0;  // context-parallel index
  std::uint32_t index = 0;    // microbatch of the lane, from 0
  Range samples{};            // positions in Program::work_samples, the same for all contexts
  Range items{};              // positions in Program::items_of_works, of this context
  Range rows{};  // positions in Program::work_rows: this context's intervals of the token axis, on
                 // which the samples are concatenated; the whole axis without context parallelism
  bool operator==(const Work&) const = default;
};

// A block of memory on one rank.
struct Buffer {
  Rank rank{};
  BufferKind kind = BufferKind::boundary;
  std::int64_t rows = 0;   // boundary kinds
  std::int32_t width = 0;  // boundary kinds, elements
  Bytes bytes{};
  // Boundary kinds: index of the chunk's input that it is (shared/plan/links.h).
  std::uint8_t slot = 0;
  bool zeroed = false;  // rows that no message writes are zero
  bool operator==(const Buffer&) const = default;
};
// One access of an op to a buffer.
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
  std::uint32_t turn = 0;  // Compute::turn of the op that reads the rows
  bool operator==(const Message&) const = default;
};

// The parameters of one chunk on one rank: either those of the experts, or all others. Names and
// shapes of the parameters: shared/chunk/parameters.h.
struct ParamGroup {
  Rank rank{};
  ModuleId module{};
  LayerRange layers{};
  GroupId replicas{};  // ranks over which gradients are summed: those with a copy of the parameters
                       // or, if sharded, of the shard. Invalid if there are no copies
  bool trainable = true;
  Bytes bytes{};              // size of what stays in memory between steps
  bool experts = false;       // the experts' parameters
  std::int64_t elements = 0;  // number of elements when the parameters are used (gathered)
  std::int64_t trained = 0;   // number of these elements that have a gradient
  ShardIndex shard{};
  GroupId tensor{}, context{}, expert{};  // groups of the chunk's inner collectives; invalid: none
  GroupId partials{};  // the ranks of `tensor`, for sums of partial gradients. A group of its own,
                       // because a communicator is used by one stream only
  GroupId shards{};    // ranks over which optimizer state (and more, see Shard) is sharded
  GroupId tied{};      // ranks that have a copy of the tied matrix in other layers
  bool operator==(const ParamGroup&) const = default;
};

// The forward or backward pass of one microbatch through a range of layers.
struct Compute {
  ModuleId module{};
  LayerRange layers{};
  Phase phase = Phase::forward;
  WorkId work{};
  ParamGroupId params{};           // the chunk's parameters on this rank, without the experts'
  Recipe recipe = Recipe::layout;  // what the backward pass of this microbatch recomputes
  // Place in the order in which the hosts of all ranks queue work for their devices
  // (shared/step/turns.h); 0 in Programs that are not for an executor.
  std::uint32_t turn = 0;
  bool operator==(const Compute&) const = default;
};
// Several sends, or several receives, that are launched and completed together. `messages` are
// positions in Program::exchange_messages.
struct Exchange {
  bool sends = false;
  Range messages{};
  bool operator==(const Exchange&) const = default;
};
// What a collective op transfers for the parameters `params`.
enum class Purpose : std::uint8_t {
  gradients,          // gradients, over replicas or shards
  partial_gradients,  // gradients that are partial sums over the tensor-parallel ranks
                      // (Parameter::partial)
  tied_gradients,     // gradients of a tied matrix
  parameters,         // parameter values, gathered from their shards
  scalars             // no parameters: the step scalars of all ranks {loss sum, squared gradient
                      // norm, non-finite flag}
};
constexpr auto names(Purpose) {
  return names_of<Purpose>("gradients", "partial gradients", "tied gradients", "parameters",
                           "scalars");
}
// One collective over a group.
struct Collective {
  CollectiveKind kind = CollectiveKind::all_reduce;
  GroupId group{};
  std::uint32_t sequence = 0;  // number of collectives that the group ran before in this step
  ParamGroupId params{};       // invalid: step scalars
  Bytes bytes{};               // size of the whole array on each rank
  Purpose purpose = Purpose::gradients;
  bool operator==(const Collective&) const = default;
};
// One optimizer step over all parameter groups of the rank. Gradients are scaled by the clip factor
// that follows from the step scalars.
struct Update {
  Range params{};
  bool operator==(const Update&) const = default;
};

// Copies the activations that one compute op saved to the host's memory after the forward pass, or
// back before the backward pass. A copy to the host reads and frees the buffers of saved
// activations and writes one host buffer; a copy back does the reverse.
struct HostCopy {
  bool to_host = true;
  ModuleId module{};
  LayerRange layers{};
  WorkId work{};
  Bytes bytes{};
  bool operator==(const HostCopy&) const = default;
};

// One operation of a stream.
struct Op {
  StreamId stream{};
  // Compute: the cell, that is, all ranks that start the op together, because its inner collectives
  // join them (cell_ranks() in shared/plan/plan.h). A group of kind `cell`, or one of the cell's
  // tensor, context and expert groups that has the same members. Invalid: the rank computes alone.
  // Other ops: invalid; a Collective has its own group.
  GroupId group{};
  std::variant<Compute, Exchange, Collective, Update, HostCopy> what;
  Range waits_for{};  // positions in Program::waits
  Range buffers{};    // positions in Program::buffer_uses
  bool operator==(const Op&) const = default;
};

struct Program {
  // The values that ids of modules and layers refer to.
  Model model;
  Layout layout;
  NumberFormat precision = NumberFormat::fp32;
  // Structure.
  std::uint32_t ranks = 0;
  // Valid: the Program is the part of this one rank. It has the rank's ops, the groups that contain
  // the rank, the messages that it sends or receives, the microbatches of its ops and messages, and
  // their samples of the batch.
  Rank only{};
  std::vector<Stream> streams;
  std::vector<Group> groups;
  std::vector<Buffer> buffers;
  std::vector<Message> messages;
  std::vector<ParamGroup> params;
  std::vector<Op> ops;
  std::vector<Range> rank_ops;  // by rank: positions in ops; one entry in a part
  std::vector<OpId> waits;
  std::vector<BufferUse> buffer_uses;
  std::vector<MessageId> exchange_messages;
  // The microbatches of this step.
  Batch batch;
  std::vector<Work> works;
  // [works][modules]; zero if the module is not in the branch of the microbatch.
  std::vector<WorkSize> sizes;
  std::vector<std::uint32_t> work_samples;  // positions in batch.samples
  std::vector<ItemOfWork> items_of_works;
  std::vector<Interval> work_rows;
  BatchTotals totals;  // of the whole batch

  bool operator==(const Program&) const = default;

  // Returns the positions in `ops` of the rank's ops.
  Range ops_of(Rank rank) const { return rank_ops[only.valid() ? 0 : rank.value]; }
  Rank rank_of(const Op& op) const { return streams[op.stream.value].rank; }
  const WorkSize& size_of(WorkId work, ModuleId module) const {
    return sizes[work.value * model.modules.size() + module.value];
  }
};

// Returns the parameters of a group, in the order of the layers.
std::vector<Parameter> parameters_of(const Module& module, const ParamGroup& group);

// Returns a 64-bit digest of everything in the Program but the turns of its ops and messages, which
// decide when hosts queue them and not what runs. Ranks compare it before a step.
std::uint64_t hash(const Program& program);
// Returns a short description for traces and messages, such as "F language[0,3) work 2".
std::string describe(const Program& program, OpId op);

}  // namespace polyphony
