// Builds a valid Program op by op. Ops must be added in a global order in which they could run, so
// that the Program has no deadlock.
//
// Waits for buffers are added automatically: a read waits for the last write, a write or free for
// every earlier use. Waits within one stream are omitted, because the order of the stream implies
// them. add() returns the position of the op in the order of adding; finish() groups the ops by
// rank and renumbers them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "shared/program/program.h"

namespace polyphony::tests {

using Draft = std::uint32_t;

class ProgramBuilder {
 public:
  explicit ProgramBuilder(std::uint32_t ranks);

  Program program;  // model, layout, batch, works, params: filled in by the caller

  StreamId stream(Rank rank, StreamKind kind, const std::string& name);  // created on first use
  GroupId group(GroupKind kind, std::vector<Rank> members);
  BufferId buffer(Rank rank, BufferKind kind, std::int64_t rows, std::int32_t width);
  // Adds a message that copies rows of a boundary buffer to another of the same width.
  MessageId message(BufferId from, std::int64_t from_row, BufferId to, std::int64_t to_row,
                    std::int64_t rows);

  Draft add(StreamId stream, Op op, std::vector<Draft> waits, std::vector<BufferUse> uses);
  Draft compute(StreamId stream, Compute what, GroupId rendezvous, std::vector<Draft> waits,
                std::vector<BufferUse> uses);
  Draft exchange(StreamId stream, bool sends, const std::vector<MessageId>& messages,
                 std::vector<Draft> waits, std::vector<BufferUse> uses);
  // Adds one op on the collective stream of each member; `waits` are by member.
  std::vector<Draft> collective(CollectiveKind kind, GroupId group, Bytes bytes,
                                const std::vector<std::vector<Draft>>& waits,
                                const std::vector<ParamGroupId>& params);

  std::uint32_t count() const { return static_cast<std::uint32_t>(drafts_.size()); }
  Rank rank_of(Draft draft) const { return program.rank_of(drafts_[draft].op); }
  // Returns the ops of a rank so far, in order.
  const std::vector<Draft>& of_rank(Rank rank) const { return by_rank_[rank.value]; }

  Program finish();

 private:
  struct DraftOp {
    Op op;
    std::vector<Draft> waits;
    std::vector<BufferUse> uses;
  };
  std::vector<Draft> with_buffer_waits(StreamId stream, std::vector<Draft> waits,
                                       const std::vector<BufferUse>& uses);

  std::vector<DraftOp> drafts_;
  std::vector<std::vector<Draft>> by_rank_;
  std::vector<std::vector<Draft>> users_;  // by buffer
  std::vector<Draft> last_write_;          // by buffer
  std::vector<std::uint32_t> sequence_;    // by group
  std::map<std::pair<Rank, std::string>, StreamId> streams_;
};

}  // namespace polyphony::tests
