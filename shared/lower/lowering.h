// Internal to lower(): Builder makes the tables that all ranks share; RankLowering makes the ops of
// one rank.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "shared/held/stack_sizes.h"
#include "shared/lower/crossing.h"
#include "shared/lower/lower.h"
#include "shared/step/turns.h"

namespace polyphony::lowering {

// The groups that a rank belongs to in one branch. Invalid: it is alone in that group.
struct RankGroups {
  GroupId tensor, context, expert, cell, partials;
  GroupId shards, replicas;                // of dense parameters
  GroupId expert_shards, expert_replicas;  // of experts'
  GroupId tied;
};

class StageGroups;

class Builder {
 public:
  Builder(const Scenario& scenario, const Layout& layout, const Plan& plan, const StepPlan& step,
          const Batch& batch, StepKind kind, const SoftwareStack& stack);
  Program build();

 private:
  friend class RankLowering;
  friend class StageGroups;
  void make_works();
  void find_representatives();
  void make_groups(const Branch& branch);
  bool partial_sums(const Branch& branch);
  // Returns the parameters of a chunk (`experts`: the experts' alone, else all others), made once
  // for all ranks that hold the chunk.
  const std::vector<Parameter>& parameters_of(const Chunk& chunk, bool experts);
  GroupId add_group(GroupKind kind, RankList members);
  // Returns whether the ranks being lowered hold the stage.
  bool here(const ChunkPlace& place) const;
  struct Seat {
    int context = 0, lane = 0;
  };
  // Returns the lane and context-parallel rank of a work, which is numbered within its branch.
  Seat seat(std::size_t branch, std::size_t work) const;
  void make_crossing(const ChunkLink& link);
  Side make_side(const ChunkPlace& place, std::vector<std::int64_t> rows, BufferKind kind,
                 const ChunkLink& link);
  // Returns the turn of the action that reads what arrives at this side for a work.
  std::uint32_t turn_at(const Side& destination, std::size_t work) const {
    return turns_.at(destination.place, work,
                     destination.backward ? TurnOf::backward : TurnOf::forward);
  }
  void make_messages(const std::vector<RowRun>& runs, Side& source, Side& destination);
  // The rows of a run between two tensor-parallel ranks, as rows of the consumer's work.
  struct Part {
    int to = 0, from = 0;  // tensor-parallel indices
    Interval rows;
    std::int64_t first_to = 0;  // the receiver's own first row
  };
  void add_run(const RowRun& run, Side& source, Side& destination);
  void add_parts(const RowRun& run, const Side& source, const Side& destination);
  int distance(int from, int to) const;
  void keep_slowest(const Side& source, const Side& destination);
  void add_message(const RowRun& run, const Part& part, Side& source, Side& destination);
  // Returns tensor-parallel rank t of a work at one end of a link.
  Rank rank_of(const Side& side, std::size_t work, int t) const;
  bool leads(const Side& source, const Side& destination) const;
  void add_led(Side& destination);
  void add_relays(Side& destination);
  std::vector<std::int64_t> rows_leaving_all(const ChunkPlace& place, bool of_kept) const;
  BufferId add_buffer(Rank rank, BufferKind kind, Bytes bytes);
  BufferId add_boundary_buffer(Rank rank, BufferKind kind, std::int64_t rows,
                               const ChunkLink& link);
  const Chunk& chunk_at(const ChunkPlace& place) const {
    return plan_.branches[place.branch].stages[place.stage].chunks[place.chunk];
  }
  // Returns whether the plan is folded and another rank represents this one.
  bool stood_for(Rank rank) const {
    for (const Branch& branch : plan_.branches)
      if (const int place = branch.place_of(rank); place >= 0) return !branch.has_ops(place);
    return false;
  }
  bool shards_rows(ModuleId module) const {
    const ModuleLayout& layout = program_.layout.modules[module.value];
    return layout.sp && layout.tp > 1;
  }

  // Returns the number of tokens of the module's largest work.
  std::int64_t most_tokens(ModuleId module);

  // Returns whether buffer sizes are those of another framework.
  bool of_another_stack() const { return stack_.memory.keeping != Keeping::polyphony; }

  const Plan& plan_;
  const StepPlan& step_;
  const WorkTable& table_;
  const TurnTable turns_;
  const SoftwareStack& stack_;
  const Cluster& cluster_;
  const bool training_;
  struct Ends {
    Rank from, to;
  };
  std::vector<Part> parts_;  // of the current run
  Ends ends_;                // first tensor-parallel ranks of the current run
  Program program_;
  std::vector<Representatives> representatives_;  // by branch
  // By branch and place in its grid; when lowering one rank, that rank's alone.
  std::vector<std::vector<RankGroups>> groups_;
  std::map<std::pair<ModuleId, LayerRange>, std::array<std::vector<Parameter>, 2>> parameters_;
  std::vector<std::int64_t> most_tokens_;  // by module; empty: not computed yet
  GroupId world_group_;
  std::vector<ChunkLink> links_;
  std::vector<Crossing> crossings_;
  std::vector<std::int32_t> crossing_of_;  // by link; -1: local
};

// Returns the rows of tensor-parallel rank t of `tp` when `rows` rows are divided: runs of equal
// length, the last ones shorter or empty.
inline Interval own_rows(std::int64_t rows, int tp, int t) {
  const std::int64_t share = (rows + tp - 1) / tp;
  return {std::min(rows, share * t), std::min(rows, share * (t + 1))};
}

// The number of members of a group, and the index of `rank` among them; a group of one if it is
// invalid.
struct PlaceInGroup {
  int size = 1, index = 0;
};
PlaceInGroup place_in(const Program& program, GroupId group, Rank rank);

// relay: a leader passes on the rows that it received, before it computes with them.
enum class Way : std::uint8_t { receive, send, relay };

// One end of a link on this rank.
struct Port {
  const ChunkLink* link = nullptr;
  const Crossing* crossing = nullptr;         // null: local
  std::vector<BufferId> forwards, backwards;  // by microbatch
  std::vector<OpId> sent;                     // by microbatch, forward; invalid: nothing is sent
  StreamId streams[2][3];                     // by direction (1: backward), then Way
};

// Memory of one chunk for one work; equal for works of equal size.
struct ChunkBytes {
  std::optional<WorkSize> of;  // empty: not known yet
  Recipe recipe = Recipe::layout;
  Bytes tape{}, workspace{};  // tape: saved activations, without the chunk's inputs and `kept`
  Bytes forward{};            // in addition, while a forward runs
  bool splits = false;
  // What stays from the input part of a backward to its weight part, if that is an op of its own:
  // bytes within the saved activations, and bytes beyond them.
  Bytes kept{}, held{};
};

struct ChunkState {
  Chunk chunk;
  std::vector<Port*> inputs, outputs;  // inputs by slot
  ParamGroupId params, experts;
  bool visited = false;  // has a backward
  bool trained = false;  // some of its parameters train
  OpId last_gradient;    // the last op that adds to its gradients
  OpId last_scatter;     // their last reduce-scatter, if one follows every backward
  std::vector<OpId> forwards, backwards;  // in order; for receive slots
  // By microbatch. held: what the weight part needs; kept: the part of it within the saved
  // activations; away: the saved activations in the host's memory.
  std::vector<BufferId> tapes, held, kept, away;
  std::vector<OpId> offloads, fetches;         // by microbatch: copies to the host, and back
  std::vector<bool> moves;                     // by microbatch: whether it is offloaded
  std::vector<std::vector<BufferId>> arrived;  // by microbatch: inputs, kept until the backward
  std::vector<ChunkBytes> bytes;               // by microbatch, once known
  std::size_t sized = 0;                       // the microbatch computed last
};

// A rank's place in one stage of one branch.
struct Role {
  std::size_t branch = 0, stage = 0;
  int lane = 0, context = 0, tensor = 0;
  std::vector<bool> splits;     // by microbatch: backward in two parts
  std::vector<Recipe> recipes;  // by microbatch
  std::vector<ChunkState> chunks;
};

// What one compute op does.
struct Task {
  std::size_t role = 0, chunk = 0;
  ActionKind action = ActionKind::forward;
  int microbatch = 0;
  int order = 0;  // position of its action in the rank's order
  int after_sent =
      -1;  // of a forward: the microbatch whose rows must have left the stage before it
};

class RankLowering {
 public:
  RankLowering(Builder& builder, Rank rank)
      : b_(builder),
        program_(builder.program_),
        rank_(rank),
        first_params_(builder.program_.params.size()) {}
  void emit();

 private:
  void find_roles();
  void add_role(std::size_t branch, int place, std::size_t stage);
  void join_ports(Role& role);
  // Adds the buffers that a framework keeps resident throughout, in addition to parameters and
  // state.
  void add_standing();
  ChunkBytes measure(const Role& role, const ChunkState& chunk, WorkId work, bool splits,
                     Recipe recipe) const;
  OpId slot_after(const std::vector<OpId>& actions) const;
  ParamGroupId add_params(const Role& role, const Chunk& chunk, bool experts);
  std::vector<Task> tasks();
  // Decides which saved activations are offloaded until the backward at position `order`.
  void find_moves(std::size_t role, int microbatch, int order);
  // At the first task of an action: starts the copies back for the next action, and makes the
  // action wait for earlier copies to the host.
  void begin_action(const Task& task);
  void offload(const Role& role, ChunkState& chunk, int microbatch, OpId after);
  void fetch(const Role& role, ChunkState& chunk, int microbatch, OpId left);
  OpId add_copy(const Role& role, const ChunkState& chunk, int microbatch, bool to_host,
                const std::vector<OpId>& waits, const std::vector<BufferUse>& uses);

  void forward(Role& role, ChunkState& chunk, int microbatch, int after_sent);
  void backward(Role& role, ChunkState& chunk, int microbatch);
  void weight(Role& role, ChunkState& chunk, int microbatch);
  // Adds gathers of fully sharded parameters. `position` among the tasks decides when they are
  // gathered and freed.
  void gather_for(const std::vector<Task>& tasks, std::size_t position);
  // An unsharded gradient that an op makes and a reduce-scatter consumes.
  struct Whole {
    ParamGroupId params;
    BufferId buffer;
  };
  std::vector<Whole> whole_gradients(const ChunkState& chunk, std::vector<BufferUse>& uses);
  void add_sizes(const ParamGroup& group, const std::vector<Parameter>& list);
  void scatter(ChunkState& chunk, const std::vector<Whole>& wholes, OpId op);
  OpId add_partial(ParamGroupId params, OpId after, BufferId whole);
  void tail();
  void reduce(const ChunkState& chunk, ParamGroupId params, std::vector<OpId>& ends,
              std::vector<ParamGroupId>& gathers_after);

  std::uint32_t branch_work(const Role& role, int microbatch) const;
  WorkId work_id(const Role& role, int microbatch) const;
  const RankGroups& groups(const Role& role) const;
  RankContext context(const Role& role, const ChunkState& chunk, WorkId work, Recipe recipe) const;
  // Returns the groups whose values are gathered to run the chunk. Experts that differ between
  // lanes are not gathered.
  std::vector<ParamGroupId> gathers(const ChunkState& chunk) const;
  const ChunkBytes& bytes(const Role& role, ChunkState& chunk, int microbatch);
  StreamId stream(StreamKind kind, const std::string& name);
  StreamId stream(Port& port, bool backward, Way way);
  OpId add_op(StreamId stream, GroupId group, decltype(Op::what) what, std::span<const OpId> waits,
              std::span<const BufferUse> uses);
  OpId add_compute(const Role& role, const ChunkState& chunk, Phase phase, int microbatch,
                   std::vector<OpId>& waits, std::vector<BufferUse>& uses);
  // `last`: no later op reads the relay's buffer.
  OpId add_exchange(Port& port, bool backward, Way way, const std::vector<MessageId>& messages,
                    OpId wait, BufferId buffer, bool last = false);
  OpId add_collective(GroupId group, CollectiveKind kind, Purpose purpose, ParamGroupId params,
                      Bytes bytes, const std::vector<OpId>& waits,
                      const std::vector<BufferUse>& uses = {});
  // Adds the receive of what crosses into `port` (with `backward`: gradients), or passes on local
  // rows. The buffer is freed by the op that reads it, or is moved to `kept`.
  OpId arrive(const Role& role, Port& port, bool backward, int microbatch, OpId slot,
              std::vector<BufferUse>& uses, std::vector<BufferId>* kept);
  // Returns the buffer that leaves over `port`; depart() sends it after `op`.
  BufferId leave(const Role& role, Port& port, bool backward, int microbatch,
                 std::vector<BufferUse>& uses);
  void depart(const Role& role, Port& port, bool backward, int microbatch, OpId op);
  const Side& side(const Port& port, bool backward, bool source) const;
  std::size_t entry(const Role& role, int microbatch, const Side& side) const {
    return side.at(branch_work(role, microbatch), role.tensor);
  }

  Builder& b_;
  Program& program_;
  Rank rank_;
  std::size_t first_params_;  // index of the rank's first group of parameters
  // Bytes of a group of parameters: of its gathered values; of its unsharded gradients if they are
  // reduced after every backward; of gradients that are partial sums.
  struct ParamSizes {
    Bytes gathered{}, whole{}, partial{};
  };
  const ParamSizes& sizes(ParamGroupId params) const {
    return param_sizes_[params.value - first_params_];
  }
  std::vector<ParamSizes> param_sizes_;  // by group, from first_params_
  std::vector<Role> roles_;
  std::vector<std::unique_ptr<Port>> ports_;
  std::map<std::string, StreamId> streams_;
  std::map<GroupId, std::uint32_t> sequences_;
  std::map<ParamGroupId, BufferId> gathered_;  // values that are gathered now
  std::map<ParamGroupId, OpId> gather_ops_;
  OpId scatters_[2];                   // reduce-scatters of the last two chunks, the older first
  std::vector<BufferId> freed_after_;  // gathered values that the current op uses last
  OpId last_compute_;
  struct Move {
    std::size_t role = 0, chunk = 0;
    int microbatch = 0;
  };
  std::map<int, std::vector<Move>> fetches_;  // by position of the backward action
  std::map<std::pair<std::size_t, int>, int>
      made_;                                    // by role and microbatch: position of the forward
  int action_ = -1;                             // position of the current action
  std::vector<std::pair<int, OpId>> offloads_;  // by action, ascending
  std::vector<OpId> sent_;   // forward sends since the last compute op, if sends block
  std::vector<OpId> waits_;  // of the current compute op
  std::vector<BufferUse> uses_;
};

}  // namespace polyphony::lowering
