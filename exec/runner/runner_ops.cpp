// The implementation of each kind of op (exec/runner/runner.h).
#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <thread>

#include "exec/runner/runner_impl.h"
#include "exec/system/process.h"
#include "shared/chunk/expand.h"
#include "shared/error.h"
#include "shared/program/expand_op.h"
#include "shared/scenario/learning_rate.h"

namespace polyphony::exec {
namespace {

// Host and device compare the same numbers: the loss, and the square of the norm.
double squared(const StepLimits& most) { return most.gradient_norm * most.gradient_norm; }
bool above(const StepLimits& most, double loss, double squared_norm) {
  return loss > most.loss || squared_norm > squared(most);
}
bool limits_anything(const StepLimits& most) {
  return std::isfinite(most.loss) || std::isfinite(most.gradient_norm);
}

}  // namespace

// Records that a tensor of another stream is used on the device's current stream.
void Runner::Impl::use_here(const torch::Tensor& tensor) const {
  if (!streams || !tensor.defined()) return;
  tensor.record_stream(current_stream(options.device));
}

// Takes a boundary tensor for its only reader; zeros if nothing was sent to it.
torch::Tensor Runner::Impl::take(BufferId id) {
  torch::Tensor tensor = std::exchange(state->tensor(id), torch::Tensor());
  use_here(tensor);
  const Buffer& buffer = state->program().buffers[id.value];
  return tensor.defined() ? tensor : torch::zeros({buffer.rows, buffer.width}, format());
}

void Runner::Impl::note_finite(OpId id, const torch::Tensor& made) {
  if (!made.defined() || made.numel() == 0) return;
  // The maximum norm reads the tensor once. isfinite().all() takes five kernels, each of which
  // reads the output of the previous one.
  constexpr double kLargest = std::numeric_limits<double>::infinity();
  results.back().finite.emplace_back(id, at::linalg_vector_norm(made, kLargest));
}

// Describes the first op of this rank that made a non-finite value, or else the first such
// gradient; empty if there is none.
std::string Runner::Impl::not_finite(const Result& result) {
  const Program& program = *result.program;
  for (const auto& [id, largest] : result.finite) {
    if (std::isfinite(largest.item<double>())) continue;
    std::string text = describe(program, id) + ", samples";
    const Work& work = program.works[std::get<Compute>(program.ops[id.value].what).work.value];
    for (std::uint32_t i = work.samples.begin; i < work.samples.end; ++i)
      text += " " + std::to_string(program.batch.samples[program.work_samples[i]].id);
    return text;
  }
  std::string name;
  auto norms = result.norms.begin();
  each_trained([&](HeldGroup& group) {
    const std::string found =
        group.store->not_finite(streams ? *norms++ : group.store->gradient_norms());
    if (name.empty()) name = found;
  });
  return name.empty() ? name : "the gradient of " + name;
}

void Runner::Impl::compute(OpId id, const Op& op, const Compute& what) {
  const Seconds start = steady_now();
  HeldChunk& held = chunks.at(what.module, what.layers);
  held.chunk->take_issued();
  for (HeldGroup& group : held.parameters) group.store->use_here();
  const auto open_gradients = [&] {
    for (HeldGroup& group : held.parameters) group.store->open_gradient();
  };
  switch (what.phase) {
    case Phase::forward:
      forward(id, op, what, held);
      break;
    case Phase::recompute:
      POLYPHONY_CHECK(false, describe(state->program(), id)
                                 << ": recomputation is part of the backward op here");
      break;
    case Phase::backward:
      open_gradients();
      backward(id, op, what, held);
      break;
    case Phase::backward_input:
      backward(id, op, what, held);
      break;
    case Phase::backward_weight:
      open_gradients();
      held.chunk->backward_weight(what.work.value);
      break;
  }
  each_use(op, Use::free, BufferKind::parameter, [&](BufferId, const Buffer&) {
    for (HeldGroup& group : held.parameters) group.store->release();
  });
  // Tensors that were read are already freed. This frees those that are not sent, since another
  // replica sends its copy.
  for (const BufferKind kind : {BufferKind::boundary, BufferKind::boundary_gradient})
    each_use(op, Use::free, kind,
             [&](BufferId buffer, const Buffer&) { state->tensor(buffer) = torch::Tensor(); });
  if (options.check_collectives && !evaluating) {
    const std::vector<InnerCollective> issued = held.chunk->take_issued();
    const std::vector<InnerCollective> expected = expand(state->program(), id).collectives;
    POLYPHONY_CHECK(issued == expected, describe(state->program(), id)
                                            << " issued " << issued.size()
                                            << " collectives, its expansion has " << expected.size()
                                            << " or other sizes");
  }
  if (pace && !pace->empty())
    std::this_thread::sleep_until(std::chrono::steady_clock::time_point(
        std::chrono::duration_cast<std::chrono::steady_clock::duration>(start +
                                                                        (*pace)[id.value])));
}

void Runner::Impl::forward(OpId id, const Op& op, const Compute& what, HeldChunk& held) {
  const WorkInput& data = (*inputs)(what.work);
  std::vector<torch::Tensor> arrived;
  for (const ChunkInput& input : held.inputs) arrived.push_back(empty_rows(input.width));
  each_use(op, Use::read, BufferKind::boundary,
           [&](BufferId buffer, const Buffer& b) { arrived[b.slot] = take(buffer); });
  const bool language =
      state->program().model.modules[what.module.value].kind == ModuleKind::language;
  if (held.head && evaluating) {
    if (language) predictions[what.work] = held.chunk->predict(arrived, data);
    return;
  }
  HostTape* const away = evaluating ? nullptr : state->away(op);
  std::optional<TapeWatch> watch;
  if (away) watch.emplace(options.device.type());
  const torch::Tensor output = held.chunk->forward(what.work.value, arrived, data, what.recipe);
  if (away) *away = watch->tape(output);
  if (evaluating || !needs_backward(state->program().model, what.module))
    held.chunk->drop(what.work.value);
  if (!evaluating) note_finite(id, output);
  if (held.head) {
    if (held.group.shard.tensor_index == 0) loss += output.detach();
    return;
  }
  each_use(op, Use::write, BufferKind::boundary,
           [&](BufferId buffer, const Buffer&) { state->tensor(buffer) = output; });
}

void Runner::Impl::backward(OpId id, const Op& op, const Compute& what, HeldChunk& held) {
  torch::Tensor gradient;
  each_use(op, Use::read, BufferKind::boundary_gradient, [&](BufferId buffer, const Buffer&) {
    const torch::Tensor one = take(buffer);
    gradient = gradient.defined() ? gradient + one : one;
  });
  const std::vector<torch::Tensor> gradients =
      what.phase == Phase::backward ? held.chunk->backward(what.work.value, gradient)
                                    : held.chunk->backward_input(what.work.value, gradient);
  each_use(op, Use::write, BufferKind::boundary_gradient, [&](BufferId buffer, const Buffer& b) {
    note_finite(id, gradients[b.slot]);
    state->tensor(buffer) = gradients[b.slot];
  });
}

// Moves some messages of an exchange; all of them if `messages` is empty.
void Runner::Impl::exchange(const Launch& launch, const Op& op, const Exchange& what,
                            std::span<const MessageId> messages) {
  const Program& program = state->program();
  if (messages.empty())
    messages =
        std::span(program.exchange_messages).subspan(what.messages.begin, what.messages.size());
  bool last = false;  // the sent buffer has no later reader (a relay's buffer has)
  for (std::uint32_t u = op.buffers.begin; u < op.buffers.end; ++u)
    last |= program.buffer_uses[u].use == Use::free;
  const Message& one = program.messages[messages.front().value];
  const BufferId id = what.sends ? one.from : one.to;
  const Buffer& buffer = program.buffers[id.value];
  torch::Tensor& slot = state->tensor(id);
  if (!what.sends && launch.first)
    slot = buffer.zeroed ? torch::zeros({buffer.rows, buffer.width}, format())
                         : torch::empty({buffer.rows, buffer.width}, format());
  use_here(slot);
  const torch::Tensor whole = slot.contiguous();
  POLYPHONY_CHECK(whole.size(0) == buffer.rows, "the buffer of an exchange has "
                                                    << buffer.rows << " rows, its tensor "
                                                    << whole.size(0));
  slot = what.sends && last && launch.last ? torch::Tensor() : whole;
  if (launch.first && !launch.last) streams->prepared(launch.op, current_stream(options.device));
  std::vector<Transfer> transfers;
  transfers.reserve(messages.size());
  for (const MessageId message_id : messages) {
    const Message& message = program.messages[message_id.value];
    const std::int64_t row = what.sends ? message.from_row : message.to_row;
    transfers.push_back({whole.narrow(0, row, message.rows),
                         what.sends ? message.destination : message.source, state->tag(message_id),
                         what.sends});
  }
  transport.exchange(transfers);
}

void Runner::Impl::host_copy(const Op& op, const HostCopy& what) {
  each_use(op, what.to_host ? Use::write : Use::read, BufferKind::host,
           [&](BufferId buffer, const Buffer&) {
             HostTape& tape = state->host_tape(buffer);
             what.to_host ? tape.to_host() : tape.to_device();
           });
}

torch::Tensor Runner::Impl::step_scalars() {
  const torch::NoGradGuard no_grad;
  torch::Tensor squares = torch::zeros_like(loss);
  each_trained([&](const HeldGroup& group) {
    if (group.counts) squares += group.store->squared_norm();
    // Computed before the update sets gradients to zero.
    if (streams) results.back().norms.push_back(group.store->gradient_norms());
  });
  return torch::stack(
      {loss, squares, (squares + loss).isfinite().logical_not().to(torch::kFloat64)});
}

// Keeps the step's scalars, which have been summed over the world.
void Runner::Impl::keep_scalars(const torch::Tensor& values) {
  Result& result = results.back();
  result.values = result.here = values;
  if (!streams) {
    result.scalars = read(result);  // while the gradients still exist
    return;
  }
  OnTheWay copy = to_host(values);
  result.here = copy.here;
  result.came = std::move(copy.came);
}

StepScalars Runner::Impl::read(const Result& result) {
  const double* v = result.here.const_data_ptr<double>();
  const StepLimits& most = result.limits;
  const bool finite = v[2] == 0.0;
  StepScalars scalars{v[0], std::sqrt(v[1]), finite, !finite || above(most, v[0], v[1]), {}};
  if (!scalars.finite) scalars.not_finite = not_finite(result);
  return scalars;
}

// Returns the scalars of the oldest step whose scalars have not been taken. The host waits for a
// device here.
StepScalars Runner::Impl::take_scalars() {
  const Result result = std::move(results.front());
  results.pop_front();
  if (result.came) transport.await(*result.came);
  const StepScalars scalars = result.scalars ? *result.scalars : read(result);
  if (!scalars.skipped) ++updates;
  return scalars;
}

void Runner::Impl::collective(const Collective& what) {
  Communicator& group = chunks.communicator(what.group);
  if (what.purpose == Purpose::scalars) {
    torch::Tensor values = step_scalars();
    group.all_reduce(values, Reduction::sum);
    keep_scalars(values);
    return;
  }
  HeldParameters& store = *chunks.of(state->program().params[what.params.value]).store;
  store.use_here();
  switch (what.purpose) {
    case Purpose::gradients:
      if (what.kind == CollectiveKind::reduce_scatter)
        store.reduce_scatter(group);
      else
        store.all_reduce(group);
      break;
    case Purpose::partial_gradients:
      store.reduce_partial(group);
      break;
    case Purpose::parameters:
      store.gather(group);
      break;
    case Purpose::tied_gradients:
      store.reduce_tied(group);
      break;
    case Purpose::scalars:
      POLYPHONY_CHECK(false, name(what.purpose));
  }
}

// On a device the update uses numbers that the host does not know yet.
void Runner::Impl::update() {
  const torch::NoGradGuard no_grad;
  if (options.before_update) options.before_update();
  if (transport.world_size() == 1) keep_scalars(step_scalars());
  const torch::Tensor values = results.back().values;
  use_here(values);
  torch::Tensor skip = values[2].ne(0);
  if (const StepLimits& most = results.back().limits; limits_anything(most))
    skip = skip.logical_or(values[0].gt(most.loss)).logical_or(values[1].gt(squared(most)));
  UpdateTerms terms{{}, count, skip.to(torch::kFloat32)};
  count.add_(1).sub_(terms.skip);
  // The 1e-6 and the clamp are those of torch.nn.utils.clip_grad_norm_, so that runs are
  // comparable.
  if (training.clip_norm > 0)
    terms.clip = (training.clip_norm / (values[1].sqrt() + 1e-6)).clamp_max_(1.0);
  const AdamWOptions adamw{training.beta1, training.beta2, training.epsilon, training.weight_decay};
  each_trained([&](HeldGroup& group) {
    group.store->step(adamw, rate * rate_factor(training, group.group.module), terms);
  });
}

}  // namespace polyphony::exec
