#include "exec/runner/step_state.h"

#include "exec/runner/agreed_names.h"
#include "shared/error.h"

namespace polyphony::exec {

StepState::StepState(const Program& program, Rank rank)
    : program_(program),
      first_op_(program.ops_of(rank).begin),
      ops_(program.ops_of(rank).size()),
      tags_(message_tags(program, rank)) {
  state_ = std::make_unique<std::atomic<std::uint32_t>[]>(ops_);
  times_.resize(ops_);
  for (std::size_t i = 0; i < ops_; ++i) {
    const OpId id(first_op_ + i);
    const Op& op = program.ops[id.value];
    streams_[program.streams[op.stream.value].name].push_back(id);
    for (std::uint32_t u = op.buffers.begin; u < op.buffers.end; ++u) {
      const BufferId buffer = program.buffer_uses[u].buffer;
      const BufferKind kind = program.buffers[buffer.value].kind;
      if (kind == BufferKind::boundary || kind == BufferKind::boundary_gradient)
        tensors_.try_emplace(buffer.value);
    }
    if (const auto* copy = std::get_if<HostCopy>(&op.what); copy && copy->to_host) add_away(op);
  }
}

void StepState::add_away(const Op& op) {
  std::uint32_t host = 0, tape = 0;
  for (std::uint32_t u = op.buffers.begin; u < op.buffers.end; ++u) {
    const BufferUse& use = program_.buffer_uses[u];
    if (use.use == Use::write) host = use.buffer.value;
    if (use.use == Use::read)
      tape = use.buffer.value;  // any part identifies it: a forward writes all parts
  }
  host_tapes_.try_emplace(host);
  away_of_[tape] = host;
}

HostTape& StepState::host_tape(BufferId buffer) { return host_tapes_.at(buffer.value); }

HostTape* StepState::away(const Op& forward) {
  for (std::uint32_t u = forward.buffers.begin; u < forward.buffers.end; ++u)
    if (const auto found = away_of_.find(program_.buffer_uses[u].buffer.value);
        found != away_of_.end())
      return &host_tapes_.at(found->second);
  return nullptr;
}

void StepState::wait_for(const Op& op) {
  if (failed()) throw Stopped{};
  for (std::uint32_t w = op.waits_for.begin; w < op.waits_for.end; ++w) {
    std::atomic<std::uint32_t>& state = state_[program_.waits[w].value - first_op_];
    state.wait(0, std::memory_order_acquire);
    if (state.load(std::memory_order_acquire) == 2) throw Stopped{};
  }
}

void StepState::finish(const OpTime& time) {
  const std::size_t local = time.op.value - first_op_;
  times_[local] = time;
  std::uint32_t expected = 0;
  state_[local].compare_exchange_strong(expected, 1, std::memory_order_release);
  state_[local].notify_all();
}

void StepState::fail(std::exception_ptr error) {
  {
    std::lock_guard lock(error_mutex_);
    if (!error_) error_ = error;
  }
  failed_.store(true, std::memory_order_release);
  for (std::size_t i = 0; i < ops_; ++i) {
    std::uint32_t expected = 0;
    if (state_[i].compare_exchange_strong(expected, 2, std::memory_order_release))
      state_[i].notify_all();
  }
}

void StepState::rethrow() {
  std::lock_guard lock(error_mutex_);
  if (error_) std::rethrow_exception(error_);
}

torch::Tensor& StepState::tensor(BufferId buffer) {
  const auto entry = tensors_.find(buffer.value);
  POLYPHONY_CHECK(entry != tensors_.end(),
                  "buffer " << buffer.value << " is not a boundary buffer of this rank");
  return entry->second;
}

std::vector<OpTime> StepState::take_times() { return std::move(times_); }

}  // namespace polyphony::exec
