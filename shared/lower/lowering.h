// Inside lower(): the tables made before any op (Builder), and the ops of one rank (RankLowering).
// Not for other folders.
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

namespace polyphony::lowering {

// The groups that a rank belongs to in one branch; invalid: it is alone.
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
  void find_stand_ins();
  void make_groups(const Branch& branch);
  bool partial_sums(const Branch& branch);
  // A chunk's, made once for all ranks that have it: all but the experts', or the experts'.
  const std::vector<Parameter>& parameters_of(const Chunk& chunk, bool experts);
  GroupId add_group(GroupKind kind, RankList members);
  // Whether the ranks that are lowered have the stage.
  bool here(const ChunkPlace& place) const;
  struct Seat {
    int context = 0, lane = 0;
  };
  // Of a work, counted in its branch.
  Seat seat(std::size_t branch, std::size_t work) const;
  void make_crossing(const ChunkLink& link);
  Side make_side(const ChunkPlace& place, std::vector<std::int64_t> rows, BufferKind kind,
                 const ChunkLink& link);
  void make_messages(const std::vector<RowRun>& runs, Side& source, Side& destination);
  // Rows of a run between two tensor-parallel ranks; in rows of the consumer's work item.
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
  // Of a work's tensor-parallel ranks at one end of a link.
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
  // Folded: another rank does the same.
  bool stood_for(Rank rank) const {
    for (const Branch& branch : plan_.branches)
      if (const int place = branch.place_of(rank); place >= 0) return !branch.keeps(place);
    return false;
  }
  bool shards_rows(ModuleId module) const {
    const ModuleLayout& layout = program_.layout.modules[module.value];
    return layout.sp && layout.tp > 1;
  }

  // Of the module's largest work.
  std::int64_t most_tokens(ModuleId module);

  // Sizes are another framework's.
  bool of_another_stack() const { return stack_.memory.keeping != Keeping::polyphony; }

  const Plan& plan_;
  const StepPlan& step_;
  const WorkTable& table_;
  const SoftwareStack& stack_;
  const Cluster& cluster_;
  const bool training_;
  struct Ends {
    Rank from, to;
  };
  std::vector<Part> parts_;  // of the run in hand
  Ends ends_;                // first tensor-parallel ranks
  Program program_;
  std::vector<StandIns> stand_ins_;  // by branch
  // By branch, place in its grid; of a part the rank's own alone.
  std::vector<std::vector<RankGroups>> groups_;
  std::map<std::pair<ModuleId, LayerRange>, std::array<std::vector<Parameter>, 2>> parameters_;
  std::vector<std::int64_t> most_tokens_;  // by module; empty: not asked for yet
  GroupId world_group_;
  std::vector<ChunkLink> links_;
  std::vector<Crossing> crossings_;
  std::vector<std::int32_t> crossing_of_;  // by link; -1: local
};

// Rows that tensor-parallel rank t of `tp` has of `rows` when they are divided: equal runs, the
// last ones shorter or empty.
inline Interval own_rows(std::int64_t rows, int tp, int t) {
  const std::int64_t share = (rows + tp - 1) / tp;
  return {std::min(rows, share * t), std::min(rows, share * (t + 1))};
}

// Members of a group, and which of them `rank` is; a group of one when it is invalid.
struct PlaceInGroup {
  int size = 1, index = 0;
};
PlaceInGroup place_in(const Program& program, GroupId group, Rank rank);

// relay: a leader passes on what it received, before it computes with it.
enum class Way : std::uint8_t { receive, send, relay };

// One end of a link on this rank.
struct Port {
  const ChunkLink* link = nullptr;
  const Crossing* crossing = nullptr;         // null: local
  std::vector<BufferId> forwards, backwards;  // by microbatch
  std::vector<OpId> sent;                     // likewise, forward; invalid: nothing is sent
  StreamId streams[2][3];                     // by direction (backward), then Way
};

// Of one chunk and work item; of equal works equal.
struct ChunkBytes {
  std::optional<WorkSize> of;  // empty: not known yet
  Recipe recipe = Recipe::layout;
  Bytes tape{}, workspace{};  // tape: without the chunk's inputs, and what is `kept`
  Bytes forward{};            // besides, while a forward runs
  bool splits = false;
  // What the weight part waits with, only when it is an op of its own: in the tape's memory, and
  // beyond it.
  Bytes kept{}, held{};
};

struct ChunkState {
  Chunk chunk;
  std::vector<Port*> inputs, outputs;  // inputs by slot
  ParamGroupId params, experts;
  bool visited = false;  // has a backward
  bool trained = false;  // some of its parameters train
  OpId last_gradient;    // the last op that adds to its gradients
  OpId last_scatter;     // the last reduce-scatter of them, when it follows every backward
  std::vector<OpId> forwards, backwards;  // in their order, for receive slots
  // By microbatch; held: what the weight part needs, kept: that is in the tape already; away: the tape
  // in the host's memory.
  std::vector<BufferId> tapes, held, kept, away;
  std::vector<OpId> offloads, fetches;         // likewise: what takes it there, what brings it back
  std::vector<bool> moves;                     // likewise: whether it goes there
  std::vector<std::vector<BufferId>> arrived;  // likewise: inputs, kept until the backward
  std::vector<ChunkBytes> bytes;               // by microbatch, once it is known
  std::size_t sized = 0;                       // the microbatch of the last one made
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
  int order = 0;  // of its action
  int after_sent =
      -1;  // a forward: the microbatch whose rows have to have left the stage before it
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
  // What a framework keeps all the time beside its state.
  void add_standing();
  ChunkBytes measure(const Role& role, const ChunkState& chunk, WorkId work, bool splits,
                     Recipe recipe) const;
  OpId slot_after(const std::vector<OpId>& actions) const;
  ParamGroupId add_params(const Role& role, const Chunk& chunk, bool experts);
  std::vector<Task> tasks();
  // Which tapes wait in the host's memory for the backward action `order`.
  void find_moves(std::size_t role, int microbatch, int order);
  // At the first task of an action: what comes back for the next one; what it waits for.
  void begin_action(const Task& task);
  void offload(const Role& role, ChunkState& chunk, int microbatch, OpId after);
  void fetch(const Role& role, ChunkState& chunk, int microbatch, OpId left);
  OpId add_copy(const Role& role, const ChunkState& chunk, int microbatch, bool to_host,
                const std::vector<OpId>& waits, const std::vector<BufferUse>& uses);

  void forward(Role& role, ChunkState& chunk, int microbatch, int after_sent);
  void backward(Role& role, ChunkState& chunk, int microbatch);
  void weight(Role& role, ChunkState& chunk, int microbatch);
  // Fully sharded parameters: `position` among the tasks decides when they are gathered and freed.
  void gather_for(const std::vector<Task>& tasks, std::size_t position);
  // A whole gradient that an op makes and a reduce-scatter takes.
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
  // Whose values are gathered to run the chunk: not of experts that each lane has others of.
  std::vector<ParamGroupId> gathers(const ChunkState& chunk) const;
  const ChunkBytes& bytes(const Role& role, ChunkState& chunk, int microbatch);
  StreamId stream(StreamKind kind, const std::string& name);
  StreamId stream(Port& port, bool backward, Way way);
  OpId add_op(StreamId stream, GroupId group, decltype(Op::what) what, std::span<const OpId> waits,
              std::span<const BufferUse> uses);
  OpId add_compute(const Role& role, const ChunkState& chunk, Phase phase, int microbatch,
                   std::vector<OpId>& waits, std::vector<BufferUse>& uses);
  // `last`: nobody reads a relay's buffer after it.
  OpId add_exchange(Port& port, bool backward, Way way, const std::vector<MessageId>& messages,
                    OpId wait, BufferId buffer, bool last = false);
  OpId add_collective(GroupId group, CollectiveKind kind, Purpose purpose, ParamGroupId params,
                      Bytes bytes, const std::vector<OpId>& waits,
                      const std::vector<BufferUse>& uses = {});
  // Receives what crosses into `port` (in `backward`: gradients), or hands over what is local. Its
  // buffer is freed by the op that reads it, or goes to `kept`.
  OpId arrive(const Role& role, Port& port, bool backward, int microbatch, OpId slot,
              std::vector<BufferUse>& uses, std::vector<BufferId>* kept);
  // The buffer that leaves over `port`; depart() sends it after `op`.
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
  std::size_t first_params_;  // of the rank's own
  // Of a group of parameters: of its values gathered; of its whole gradients where they are divided
  // after every backward; of those that are partial sums.
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
  std::map<ParamGroupId, BufferId> gathered_;  // values that are here now
  std::map<ParamGroupId, OpId> gather_ops_;
  OpId scatters_[2];  // of whole gradients: the last but one chunk's, and the last's
  std::vector<BufferId> freed_after_;  // gathered values that the op in hand uses last
  OpId last_compute_;
  struct Move {
    std::size_t role = 0, chunk = 0;
    int microbatch = 0;
  };
  std::map<int, std::vector<Move>> fetches_;  // by the action of the backward
  std::map<std::pair<std::size_t, int>, int>
      made_;                                    // by role and microbatch: the action of the forward
  int action_ = -1;                             // in hand
  std::vector<std::pair<int, OpId>> offloads_;  // by action, rising
  std::vector<OpId> sent_;   // forward, since the last compute op, where that blocks
  std::vector<OpId> waits_;  // of the compute op in hand
  std::vector<BufferUse> uses_;
};

}  // namespace polyphony::lowering
