#include "tests/sim/random/program_builder.h"

#include <algorithm>
#include <utility>

#include "shared/error.h"

namespace polyphony::tests {
namespace {

constexpr Draft kNoDraft = 0xffffffffu;

void sort_unique(std::vector<Draft>& drafts) {
  std::sort(drafts.begin(), drafts.end());
  drafts.erase(std::unique(drafts.begin(), drafts.end()), drafts.end());
}

template <class T>
std::uint32_t position(const std::vector<T>& table) {
  return static_cast<std::uint32_t>(table.size());
}

}  // namespace

ProgramBuilder::ProgramBuilder(std::uint32_t ranks) : by_rank_(ranks) { program.ranks = ranks; }

StreamId ProgramBuilder::stream(Rank rank, StreamKind kind, const std::string& name) {
  const auto [at, inserted] = streams_.try_emplace({rank, name}, StreamId(program.streams.size()));
  if (inserted) program.streams.push_back({rank, kind, name});
  return at->second;
}

GroupId ProgramBuilder::group(GroupKind kind, std::vector<Rank> members) {
  program.groups.push_back({kind, std::move(members)});
  sequence_.push_back(0);
  return GroupId(program.groups.size() - 1);
}

BufferId ProgramBuilder::buffer(Rank rank, BufferKind kind, std::int64_t rows, std::int32_t width) {
  const Bytes bytes = size_of(program.precision) * (rows * width);
  program.buffers.push_back({rank, kind, rows, width, bytes});
  users_.emplace_back();
  last_write_.push_back(kNoDraft);
  return BufferId(program.buffers.size() - 1);
}

MessageId ProgramBuilder::message(BufferId from, std::int64_t from_row, BufferId to,
                                  std::int64_t to_row, std::int64_t rows) {
  const Buffer& source = program.buffers[from.value];
  const Buffer& destination = program.buffers[to.value];
  program.messages.push_back({source.rank, destination.rank, from, to, from_row, to_row, rows,
                              size_of(program.precision) * (rows * source.width)});
  return MessageId(program.messages.size() - 1);
}

std::vector<Draft> ProgramBuilder::with_buffer_waits(StreamId stream, std::vector<Draft> waits,
                                                     const std::vector<BufferUse>& uses) {
  for (const BufferUse& use : uses) {
    const std::uint32_t buffer = use.buffer.value;
    if (use.use == Use::read) {
      if (last_write_[buffer] != kNoDraft) waits.push_back(last_write_[buffer]);
    } else {
      waits.insert(waits.end(), users_[buffer].begin(), users_[buffer].end());
    }
  }
  for (const BufferUse& use : uses) {
    users_[use.buffer.value].push_back(count());
    if (use.use != Use::read) last_write_[use.buffer.value] = count();
  }
  std::erase_if(waits, [&](Draft before) {
    return before == count() || drafts_[before].op.stream == stream;
  });
  sort_unique(waits);
  return waits;
}

Draft ProgramBuilder::add(StreamId stream, Op op, std::vector<Draft> waits,
                          std::vector<BufferUse> uses) {
  op.stream = stream;
  const Rank rank = program.streams[stream.value].rank;
  for (const Draft before : waits) {
    POLYPHONY_CHECK(rank_of(before) == rank, "op " << before << " is on another rank");
  }
  waits = with_buffer_waits(stream, std::move(waits), uses);
  by_rank_[rank.value].push_back(count());
  drafts_.push_back({std::move(op), std::move(waits), std::move(uses)});
  return count() - 1;
}

Draft ProgramBuilder::compute(StreamId stream, Compute what, GroupId rendezvous,
                              std::vector<Draft> waits, std::vector<BufferUse> uses) {
  Op op;
  op.group = rendezvous;
  op.what = what;
  return add(stream, op, std::move(waits), std::move(uses));
}

Draft ProgramBuilder::exchange(StreamId stream, bool sends, const std::vector<MessageId>& messages,
                               std::vector<Draft> waits, std::vector<BufferUse> uses) {
  Exchange what;
  what.sends = sends;
  what.messages.begin = position(program.exchange_messages);
  program.exchange_messages.insert(program.exchange_messages.end(), messages.begin(),
                                   messages.end());
  what.messages.end = position(program.exchange_messages);
  Op op;
  op.what = what;
  return add(stream, op, std::move(waits), std::move(uses));
}

std::vector<Draft> ProgramBuilder::collective(CollectiveKind kind, GroupId group, Bytes bytes,
                                              const std::vector<std::vector<Draft>>& waits,
                                              const std::vector<ParamGroupId>& params) {
  const std::uint32_t sequence = sequence_[group.value]++;
  std::vector<Draft> result;
  for (std::size_t i = 0; i < program.groups[group.value].members.size(); ++i) {
    const Rank rank = program.groups[group.value].members[i];
    Op op;
    op.what = Collective{kind, group, sequence, params.empty() ? ParamGroupId() : params[i], bytes};
    result.push_back(add(stream(rank, StreamKind::collective, "collective"), op, waits[i], {}));
  }
  return result;
}

Program ProgramBuilder::finish() {
  std::vector<std::uint32_t> final_position(drafts_.size());
  std::uint32_t next = 0;
  for (const auto& drafts : by_rank_) {
    const std::uint32_t begin = next;
    for (const Draft draft : drafts) final_position[draft] = next++;
    program.rank_ops.push_back({begin, next});
  }
  program.ops.resize(drafts_.size());
  for (const auto& drafts : by_rank_) {
    for (const Draft draft : drafts) {
      const DraftOp& from = drafts_[draft];
      Op op = from.op;
      op.waits_for.begin = position(program.waits);
      for (const Draft before : from.waits) program.waits.push_back(OpId(final_position[before]));
      op.waits_for.end = position(program.waits);
      op.buffers.begin = position(program.buffer_uses);
      program.buffer_uses.insert(program.buffer_uses.end(), from.uses.begin(), from.uses.end());
      op.buffers.end = position(program.buffer_uses);
      program.ops[final_position[draft]] = op;
    }
  }
  return std::move(program);
}

}  // namespace polyphony::tests
