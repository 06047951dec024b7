// Offloaded activations of one rank: which ones are offloaded, and the ops that copy them to the
// host and back.
#include "shared/lower/lowering.h"

namespace polyphony::lowering {

// Activations are offloaded if their backward is more than this many actions after their forward:
// one action overlaps the copy to the host, another the copy back.
constexpr int kActionsAway = 2;

void RankLowering::find_moves(std::size_t role, int microbatch, int order) {
  if (order - made_.at({role, microbatch}) <= kActionsAway) return;
  const auto m = static_cast<std::size_t>(microbatch);
  Role& of = roles_[role];
  for (std::size_t c = of.chunks.size(); c-- > 0;) {
    ChunkState& chunk = of.chunks[c];
    const ModuleLayout& layout = program_.layout.modules[chunk.chunk.module.value];
    if (!chunk.visited || !offloads(layout, of.recipes[m])) continue;
    chunk.moves[m] = true;
    fetches_[order].push_back({role, c, microbatch});
  }
}

void RankLowering::begin_action(const Task& task) {
  action_ = task.order;
  OpId left;  // the last copy; copies run in order on their stream
  for (const auto& [action, op] : offloads_)
    if (action < action_ - 1) left = op;
  if (left.valid()) sent_.push_back(left);
  if (const auto next = fetches_.find(action_ + 1); next != fetches_.end())
    for (const Move& move : next->second) {
      Role& role = roles_[move.role];
      fetch(role, role.chunks[move.chunk], move.microbatch, left);
    }
}

OpId RankLowering::add_copy(const Role& role, const ChunkState& chunk, int microbatch, bool to_host,
                            const std::vector<OpId>& waits, const std::vector<BufferUse>& uses) {
  const Bytes bytes =
      program_.buffers[chunk.away[static_cast<std::size_t>(microbatch)].value].bytes;
  return add_op(
      stream(StreamKind::copy, to_host ? "to host" : "from host"), {},
      HostCopy{to_host, chunk.chunk.module, chunk.chunk.layers, work_id(role, microbatch), bytes},
      waits, uses);
}

void RankLowering::offload(const Role& role, ChunkState& chunk, int microbatch, OpId after) {
  const auto m = static_cast<std::size_t>(microbatch);
  const ChunkBytes& sizes = bytes(role, chunk, microbatch);
  chunk.away[m] = b_.add_buffer(rank_, BufferKind::host, sizes.tape + sizes.kept);
  std::vector<BufferUse> uses{{chunk.away[m], Use::allocate}, {chunk.away[m], Use::write}};
  for (const BufferId tape : {chunk.tapes[m], chunk.kept[m]})
    for (const Use use : {Use::read, Use::free}) uses.push_back({tape, use});
  chunk.offloads[m] = add_copy(role, chunk, microbatch, true, {after}, uses);
  offloads_.emplace_back(action_, chunk.offloads[m]);
}

void RankLowering::fetch(const Role& role, ChunkState& chunk, int microbatch, OpId left) {
  const auto m = static_cast<std::size_t>(microbatch);
  const ChunkBytes& sizes = bytes(role, chunk, microbatch);
  chunk.tapes[m] = b_.add_buffer(rank_, BufferKind::tape, sizes.tape);
  if (sizes.kept > Bytes(0)) chunk.kept[m] = b_.add_buffer(rank_, BufferKind::tape, sizes.kept);
  std::vector<BufferUse> uses{{chunk.away[m], Use::read}, {chunk.away[m], Use::free}};
  for (const BufferId tape : {chunk.tapes[m], chunk.kept[m]})
    for (const Use use : {Use::allocate, Use::write}) uses.push_back({tape, use});
  chunk.fetches[m] =
      add_copy(role, chunk, microbatch, false, {chunk.offloads[m], last_compute_, left}, uses);
}

}  // namespace polyphony::lowering
