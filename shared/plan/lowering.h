// Inside lower(): the tables made before any op (Builder), and the ops of one rank (RankLowering).
// Not for other folders.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "shared/plan/boundaries.h"
#include "shared/plan/lower.h"
#include "shared/plan/schedule.h"

namespace polyphony::lowering {

// One end of one direction of a boundary; entries are by (work item in its branch)·tp +
// tensor-parallel index.
struct Side {
  std::size_t branch = 0, stage = 0, tp = 1;
  std::vector<BufferId> buffers;  // invalid where there are no rows
  std::vector<std::vector<MessageId>> messages;
};
struct Crossing {
  Boundary boundary;
  Side forward_source, forward_destination;
  Side backward_source, backward_destination;  // empty when no gradient comes back
};

class Builder {
 public:
  Builder(const Scenario& scenario, const Layout& layout, const Plan& plan, const Batch& batch,
          Pass pass);
  Program build();

 private:
  friend class RankLowering;
  void make_works();
  void make_groups();
  void make_crossing(const Boundary& boundary);
  void make_messages(const std::vector<Run>& runs, Side& source, Side& destination, BufferKind kind,
                     ModuleId module);
  BufferId add_buffer(Rank rank, BufferKind kind, std::int64_t rows, std::int32_t width,
                      Bytes bytes);
  BufferId add_boundary_buffer(Rank rank, BufferKind kind, std::int64_t rows, ModuleId module);

  const Plan& plan_;
  const bool training_;
  Program program_;
  std::vector<std::uint32_t> first_work_;            // by branch
  std::vector<std::vector<GroupId>> tensor_groups_;  // by branch, stage·dp + lane
  std::vector<std::vector<GroupId>> data_groups_;    // by branch, stage·tp + tensor-parallel index
  GroupId world_group_;
  std::vector<Crossing> crossings_;
};

// A rank's place in one branch.
struct Role {
  std::size_t branch = 0, stage = 0;
  int lane = 0, tensor = 0;
  const Crossing* before = nullptr;       // the boundary this stage consumes
  const Crossing* after = nullptr;        // the boundary it produces
  std::vector<ParamGroupId> params;       // by chunk
  std::vector<OpId> last_backward;        // by chunk; invalid when it has none
  std::vector<OpId> forwards, backwards;  // by microbatch: the first compute op, for receive slots
  std::vector<std::vector<BufferId>> tapes;  // by microbatch, chunk; invalid when nothing is kept
};

class RankLowering {
 public:
  RankLowering(Builder& builder, Rank rank)
      : b_(builder), program_(builder.program_), rank_(rank) {}
  void emit();

 private:
  struct Step {  // one slot of one role
    std::size_t role;
    Slot slot;
  };
  void find_roles();
  void add_params(Role& role);
  std::vector<Step> order() const;
  void forward(Role& role, int microbatch);
  void backward(Role& role, int microbatch);
  void tail();

  std::uint32_t branch_work(const Role& role, int microbatch) const;
  StreamId stream(StreamKind kind, const std::string& name);
  OpId add_op(StreamId stream, GroupId group, decltype(Op::what) what,
              const std::vector<OpId>& waits, const std::vector<BufferUse>& uses);
  OpId add_exchange(const Crossing& crossing, bool backward, bool sends,
                    const std::vector<MessageId>& messages, const std::vector<OpId>& waits,
                    BufferId buffer);
  OpId add_collective(GroupId group, CollectiveKind kind, ParamGroupId params, Bytes bytes,
                      const std::vector<OpId>& waits);

  Builder& b_;
  Program& program_;
  Rank rank_;
  std::vector<Role> roles_;
  std::map<std::string, StreamId> streams_;
  std::map<GroupId, std::uint32_t> sequences_;
  OpId last_compute_;
};

}  // namespace polyphony::lowering
