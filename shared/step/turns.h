// Turns: one order for what the hosts of all ranks queue on their devices.
//
//   On a GPU, a kernel that exchanges data waits for the kernel of its peer, which another host
//   queues. A host may have to wait for all that its own GPU was given: when CUDA loads a module,
//   when the allocator returns memory, when a queue is full. If two hosts queue messages in
//   opposite orders, each can wait for its GPU, which waits for a kernel that the other host has
//   yet to queue, for ever.
//   So every task of a step, which is an action of one chunk, has a turn. Tasks of one rank have
//   ascending turns, and a task that reads rows has a later turn than those that make them. Both
//   ends of a message are queued at the turn of the task that reads it
//   (shared/program/queue_order.h), so all hosts keep to one order. Then a step ends even on
//   devices that run one kernel at a time, in the order in which they were queued, with hosts that
//   wait for their device at any place.
//
//   A turn is a logical clock (Lamport, CACM 21(7), 1978): the longest chain of tasks that must
//   come before, counted from 1. A task comes after the previous one of its rank, after those that
//   make what it reads. In a stage without a backward, a backward action in the order means that a
//   microbatch's rows have been sent: the next forward comes after the tasks that read them
//   (rank_lowering.cpp). Ranks of a cell share their turns; so do all
//   lanes that exchange sharded gradients or parameters after every action.
#pragma once

#include <cstdint>
#include <vector>

#include "shared/plan/links.h"
#include "shared/program/work.h"
#include "shared/step/step_plan.h"

namespace polyphony {

// What a task does with a microbatch: backward includes the input part of one.
enum class TurnOf : std::uint8_t { forward, backward, weight };
inline constexpr std::size_t kTurnsOfAChunk = 3;

// Returns the turns of a whole step: by microbatch (Work), chunk of the stages of its branch, and
// TurnOf; 0 where there is no such task. The plan must not be folded. Throws InternalError that
// names the tasks if they wait for each other in a cycle.
std::vector<std::uint32_t> make_turns(const Model& model, const Plan& plan, const StepPlan& step,
                                      const Batch& batch);

// Returns make_step_plan() with its turns, for steps that an executor queues.
StepPlan make_queued_step(const Scenario& scenario, const Layout& layout, const Plan& plan,
                          const Batch& batch);

// Finds turns in such a table, or in the part of one that belongs to a part of the works.
class TurnTable {
 public:
  // The arguments must outlive this object. All turns are 0 if `turns` is empty.
  TurnTable(const Plan& plan, const WorkTable& works, const std::vector<std::uint32_t>& turns);
  // `work` counts within the branch, and chunks within their stage.
  std::uint32_t at(const ChunkPlace& place, std::size_t work, TurnOf what) const {
    if (turns_.empty()) return 0;
    const OfBranch& branch = branches_[place.branch];
    return turns_[branch.first + work * branch.width +
                  (branch.chunks_before[place.stage] + place.chunk) * kTurnsOfAChunk +
                  static_cast<std::size_t>(what)];
  }
  // Returns the entries of these works, which count within the whole table, in ascending order.
  std::vector<std::uint32_t> of(const std::vector<std::uint32_t>& works) const;

 private:
  const WorkTable& works_;
  const std::vector<std::uint32_t>& turns_;
  struct OfBranch {
    std::size_t first = 0, width = 0;        // the first entry; entries of a work
    std::vector<std::size_t> chunks_before;  // by stage
  };
  std::vector<OfBranch> branches_;
};

}  // namespace polyphony
