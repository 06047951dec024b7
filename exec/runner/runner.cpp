#include "exec/runner/runner.h"

#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <thread>

#include "exec/runner/chunk_set.h"
#include "exec/runner/device_streams.h"
#include "exec/runner/step_state.h"
#include "exec/runner/stream_thread.h"
#include "exec/system/process.h"
#include "shared/error.h"
#include "shared/layers/expand.h"
#include "shared/program/expand_op.h"
#include "shared/program/message_order.h"

namespace polyphony::exec {

struct Runner::Impl {
  Transport& transport;
  Training training;
  Rank rank;
  RunnerOptions options;
  ChunkSet chunks;
  std::int64_t updates = 0;  // AdamW's steps
  std::map<std::string, std::unique_ptr<StreamThread>> threads;
  std::optional<DeviceStreams> streams;  // none on CPUs
  std::vector<OpTime> times;
  bool timed = true;  // a device's are read when asked for

  // Of the step that runs.
  StepState* state = nullptr;
  const Inputs* inputs = nullptr;
  const Pace* pace = nullptr;
  bool evaluating = false;
  double rate = 0;
  // One double, of this rank's heads; added to by the compute stream, read by the op that sums over
  // the world, which waits for it.
  torch::Tensor loss;
  // Whether all is finite of what ops of this rank made for others, in their order; likewise.
  std::vector<std::pair<OpId, torch::Tensor>> finite;
  StepScalars scalars;
  std::map<WorkId, torch::Tensor> predictions;

  Impl(Transport& transport_, const Scenario& scenario, const Program& structure,
       const RunnerOptions& options_)
      : transport(transport_),
        training(scenario.training),
        rank(transport_.rank()),
        options(options_),
        chunks(transport_, scenario, structure, options_.perturb, options_.device) {
    if (!options.device.is_cpu()) streams.emplace(options.device);
  }
  void run(const Program& program);
  void run_threads(const StepState& step);
  void run_ops(const std::vector<OpId>& ops);
  void run_op(OpId id, const Op& op);
  // Paced ops sleep, and a GPU's work is not the processor's.
  bool computes_on_processor(const Op& op) const {
    const bool computes =
        std::holds_alternative<Compute>(op.what) || std::holds_alternative<Update>(op.what);
    return computes && options.device.is_cpu() && (pace == nullptr || pace->empty());
  }
  void perform(OpId id, const Op& op);
  void compute(OpId id, const Op& op, const Compute& what);
  void forward(OpId id, const Op& op, const Compute& what, HeldChunk& held);
  void backward(OpId id, const Op& op, const Compute& what, HeldChunk& held);
  void exchange(const Op& op, const Exchange& what);
  void collective(const Collective& what);
  void host_copy(const Op& op, const HostCopy& what);
  void update();
  torch::Tensor step_scalars();
  void take_scalars(const torch::Tensor& values);
  void note_finite(OpId id, const torch::Tensor& made);
  std::string not_finite() const;
  void use_here(const torch::Tensor& tensor) const;
  torch::Tensor take(BufferId buffer);
  torch::Tensor empty_rows(std::int64_t width) const { return torch::zeros({0, width}, format()); }
  torch::TensorOptions format() const {
    return torch::dtype(torch_dtype(state->program().precision)).device(options.device);
  }
  template <class Visit>
  void each_use(const Op& op, Use use, BufferKind kind, Visit visit) const;
};

void Runner::Impl::run(const Program& program) {
  StepState step(program, rank);
  state = &step;
  loss = torch::zeros({}, torch::dtype(torch::kFloat64).device(options.device));
  finite.clear();
  if (streams) streams->begin(program, rank);
  if (streams && transport.queues())
    run_ops(queue_order(program, rank));
  else
    run_threads(step);
  if (streams) streams->finish();
  state = nullptr;
  times = step.take_times();
  timed = !streams;
  step.rethrow();
}

void Runner::Impl::run_threads(const StepState& step) {
  const std::vector<OpId>* compute_ops = nullptr;
  std::vector<StreamThread*> started;
  for (const auto& [stream, ops] : step.streams()) {
    if (stream == "compute") {
      compute_ops = &ops;
      continue;
    }
    std::unique_ptr<StreamThread>& thread = threads[stream];
    if (!thread) thread = std::make_unique<StreamThread>();
    thread->start([this, &list = ops] { run_ops(list); });
    started.push_back(thread.get());
  }
  if (compute_ops) run_ops(*compute_ops);
  for (StreamThread* thread : started) thread->wait();
}

void Runner::Impl::run_ops(const std::vector<OpId>& ops) {
  try {
    for (const OpId id : ops) run_op(id, state->program().ops[id.value]);
  } catch (const Stopped&) {
    // Another stream of this rank has failed and holds the reason.
  } catch (const LostPeer&) {
    state->fail(std::current_exception());
  } catch (const std::exception& error) {
    state->fail(std::current_exception());
    transport.abort(
        error.what());  // peers and this rank's other streams must not wait for what will not come
  }
}

// On a device: queues it.
void Runner::Impl::run_op(OpId id, const Op& op) {
  state->wait_for(op);
  if (options.watch) options.watch(id, true);
  const bool counted = computes_on_processor(op);
  const Seconds processor = counted ? processor_now() : Seconds(0), start = steady_now();
  {
    std::optional<c10::StreamGuard> on;
    if (streams) {
      on.emplace(streams->of(op));
      streams->start(id);
    }
    perform(id, op);
    if (streams) streams->end(id);
  }
  OpTime time{id, start, steady_now()};
  if (counted) time.processor = processor_now() - processor;
  if (options.watch) options.watch(id, false);
  state->finish(time);
}

void Runner::Impl::perform(OpId id, const Op& op) {
  if (const auto* what = std::get_if<Compute>(&op.what)) return compute(id, op, *what);
  if (const auto* what = std::get_if<Exchange>(&op.what)) return exchange(op, *what);
  if (const auto* what = std::get_if<Collective>(&op.what)) return collective(*what);
  if (const auto* what = std::get_if<HostCopy>(&op.what)) return host_copy(op, *what);
  update();
}

template <class Visit>
void Runner::Impl::each_use(const Op& op, Use use, BufferKind kind, Visit visit) const {
  const Program& program = state->program();
  for (std::uint32_t u = op.buffers.begin; u < op.buffers.end; ++u) {
    const BufferUse& entry = program.buffer_uses[u];
    const Buffer& buffer = program.buffers[entry.buffer.value];
    if (entry.use == use && buffer.kind == kind) visit(entry.buffer, buffer);
  }
}

// What another stream has made is used on the device's current one.
void Runner::Impl::use_here(const torch::Tensor& tensor) const {
  if (!streams || !tensor.defined()) return;
  tensor.record_stream(
      c10::impl::VirtualGuardImpl(options.device.type()).getStream(options.device));
}

// A boundary tensor for its only reader; one that nothing was sent for is zeros.
torch::Tensor Runner::Impl::take(BufferId id) {
  torch::Tensor tensor = std::exchange(state->tensor(id), torch::Tensor());
  use_here(tensor);
  const Buffer& buffer = state->program().buffers[id.value];
  return tensor.defined() ? tensor : torch::zeros({buffer.rows, buffer.width}, format());
}

void Runner::Impl::note_finite(OpId id, const torch::Tensor& made) {
  if (made.defined()) finite.emplace_back(id, made.isfinite().all());
}

// The first op of this rank that made a number which is not finite, in words; empty: none.
std::string Runner::Impl::not_finite() const {
  const Program& program = state->program();
  for (const auto& [id, all] : finite) {
    if (all.item<bool>()) continue;
    std::string text = describe(program, id) + ", samples";
    const Work& work = program.works[std::get<Compute>(program.ops[id.value].what).work.value];
    for (std::uint32_t i = work.samples.begin; i < work.samples.end; ++i)
      text += " " + std::to_string(program.batch.samples[program.work_samples[i]].id);
    return text;
  }
  return {};
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
      POLYPHONY_CHECK(false, describe(state->program(), id) << ": backwards recompute themselves");
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
  // What was read is gone already; what was written for nobody (another replica sends) goes here.
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

void Runner::Impl::exchange(const Op& op, const Exchange& what) {
  const Program& program = state->program();
  bool last = false;  // nobody reads what it sends after it; a relay's is still to be computed with
  for (std::uint32_t u = op.buffers.begin; u < op.buffers.end; ++u)
    last |= program.buffer_uses[u].use == Use::free;
  std::vector<Transfer> transfers;
  transfers.reserve(what.messages.size());
  const std::string channel = channel_of(program, op);
  torch::Tensor whole;
  for (std::uint32_t i = what.messages.begin; i < what.messages.end; ++i) {
    const MessageId id = program.exchange_messages[i];
    const Message& message = program.messages[id.value];
    const Buffer& buffer = program.buffers[(what.sends ? message.from : message.to).value];
    if (!whole.defined()) {
      torch::Tensor& slot = state->tensor(what.sends ? message.from : message.to);
      if (!what.sends)
        slot = buffer.zeroed ? torch::zeros({buffer.rows, buffer.width}, format())
                             : torch::empty({buffer.rows, buffer.width}, format());
      use_here(slot);
      whole = slot.contiguous();
      slot = what.sends && last ? torch::Tensor() : whole;
    }
    POLYPHONY_CHECK(whole.size(0) == buffer.rows, "an exchange's buffer has " << buffer.rows
                                                                              << " rows, tensor "
                                                                              << whole.size(0));
    const std::int64_t row = what.sends ? message.from_row : message.to_row;
    transfers.push_back({whole.narrow(0, row, message.rows),
                         what.sends ? message.destination : message.source, state->tag(id),
                         what.sends, channel});
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
  for (HeldChunk& held : chunks.all())
    for (const HeldGroup& group : held.parameters)
      if (group.store->trains() && group.counts) squares += group.store->squared_norm();
  return torch::stack(
      {loss, squares, (squares + loss).isfinite().logical_not().to(torch::kFloat64)});
}

// Here the host waits for a device.
void Runner::Impl::take_scalars(const torch::Tensor& values) {
  torch::Tensor here = values;
  if (streams) {
    here = torch::empty(values.sizes(), torch::dtype(torch::kFloat64).pinned_memory(true));
    here.copy_(values, /*non_blocking=*/true);
    transport.await(c10::impl::VirtualGuardImpl(options.device.type()).getStream(options.device));
  }
  const double* v = here.const_data_ptr<double>();
  scalars = {v[0], std::sqrt(v[1]), v[2] == 0.0, {}};
  if (scalars.finite) return;
  scalars.not_finite = not_finite();
  for (HeldChunk& held : chunks.all())
    for (const HeldGroup& group : held.parameters)
      if (scalars.not_finite.empty() && group.store->trains()) {
        const std::string name = group.store->not_finite();
        if (!name.empty()) scalars.not_finite = "the gradient of " + name;
      }
}

void Runner::Impl::collective(const Collective& what) {
  Communicator& group = chunks.communicator(what.group);
  if (what.purpose == Purpose::scalars) {
    torch::Tensor values = step_scalars();
    group.all_reduce(values, Reduction::sum);
    take_scalars(values);
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

void Runner::Impl::update() {
  if (transport.world_size() == 1) take_scalars(step_scalars());
  // The 1e-6 and the clamp are those of torch.nn.utils.clip_grad_norm_, so that runs compare.
  const double clip = training.clip_norm > 0
                          ? std::min(1.0, training.clip_norm / (scalars.gradient_norm + 1e-6))
                          : 1.0;
  if (scalars.finite) ++updates;
  const AdamWOptions adamw{training.beta1, training.beta2, training.epsilon, training.weight_decay};
  for (HeldChunk& held : chunks.all())
    for (HeldGroup& group : held.parameters) {
      if (!group.store->trains()) continue;
      if (scalars.finite)
        group.store->step(adamw, rate, clip, updates);
      else
        group.store->zero_gradient();
    }
}

Runner::Runner(Transport& transport, const Scenario& scenario, const Program& structure,
               const RunnerOptions& options)
    : impl_(std::make_unique<Impl>(transport, scenario, structure, options)) {}
Runner::~Runner() = default;

StepScalars Runner::train_step(const Program& program, const Inputs& inputs, double learning_rate,
                               const Pace& pace) {
  impl_->inputs = &inputs;
  impl_->pace = &pace;
  impl_->evaluating = false;
  impl_->rate = learning_rate;
  impl_->run(program);
  return impl_->scalars;
}

std::map<WorkId, torch::Tensor> Runner::evaluate(const Program& program, const Inputs& inputs) {
  impl_->inputs = &inputs;
  impl_->pace = nullptr;
  impl_->evaluating = true;
  impl_->predictions.clear();
  impl_->run(program);
  if (impl_->streams)
    impl_->transport.await(c10::impl::VirtualGuardImpl(impl_->options.device.type())
                               .getDefaultStream(impl_->options.device));
  return std::move(impl_->predictions);
}

const std::vector<OpTime>& Runner::times() {
  if (!std::exchange(impl_->timed, true)) impl_->times = impl_->streams->times();
  return impl_->times;
}

std::vector<Chunk*> Runner::chunks() {
  std::vector<Chunk*> list;
  for (HeldChunk& held : impl_->chunks.all()) list.push_back(held.chunk.get());
  return list;
}

std::vector<HeldParameters*> Runner::stores() {
  std::vector<HeldParameters*> list;
  for (HeldChunk& held : impl_->chunks.all())
    for (HeldGroup& group : held.parameters) list.push_back(group.store.get());
  return list;
}

std::int64_t Runner::updates() const { return impl_->updates; }
void Runner::set_updates(std::int64_t updates) { impl_->updates = updates; }

}  // namespace polyphony::exec
