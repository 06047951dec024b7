#include "exec/runner/run_ahead.h"

namespace polyphony::exec {

RunAhead::RunAhead(const Program& program, Rank rank, Bytes limit)
    : program_(program), limit_(limit.value) {
  const Range own = program.ops_of(rank);
  for (std::uint32_t id = own.begin; id < own.end; ++id) {
    const Op& op = program.ops[id];
    for (std::uint32_t u = op.buffers.begin; u < op.buffers.end; ++u)
      if (program.buffer_uses[u].use == Use::allocate)
        made_by_.emplace(program.buffer_uses[u].buffer, op.stream);
  }
}

void RunAhead::add(OpId id) {
  const Op& op = program_.ops[id.value];
  std::int64_t bytes = 0;
  for (std::uint32_t u = op.buffers.begin; u < op.buffers.end; ++u) {
    const BufferUse& use = program_.buffer_uses[u];
    if (use.use != Use::free) continue;
    const auto made = made_by_.find(use.buffer);
    if (made != made_by_.end() && made->second != op.stream)
      bytes += program_.buffers[use.buffer.value].bytes.value;
  }
  if (bytes == 0) return;
  entries_.push_back({id, bytes});
  bytes_ += bytes;
}

std::optional<OpId> RunAhead::too_far() const {
  if (entries_.empty() || bytes_ - entries_.back().bytes <= limit_) return {};
  return entries_.front().op;
}

void RunAhead::passed() {
  bytes_ -= entries_.front().bytes;
  entries_.pop_front();
}

}  // namespace polyphony::exec
