#include "exec/runner/runner.h"

#include <torch/csrc/profiler/stubs/base.h>

#include "exec/device/room_on_gpu.h"
#include "exec/runner/op_annotation.h"
#include "exec/runner/runner_impl.h"
#include "exec/system/process.h"
#include "shared/error.h"

namespace polyphony::exec {

namespace {

// An NVTX range for the lifetime of the object; none if the text is empty.
class NvtxRange {
 public:
  explicit NvtxRange(const std::string& text) : open_(!text.empty()) {
    if (open_) torch::profiler::impl::cudaStubs()->rangePush(text.c_str());
  }
  ~NvtxRange() {
    if (open_) torch::profiler::impl::cudaStubs()->rangePop();
  }
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;

 private:
  bool open_;
};

}  // namespace

void Runner::Impl::run(const Program& program) {
  StepState step(program, rank);
  state = &step;
  loss = torch::zeros({}, torch::dtype(torch::kFloat64).device(options.device));
  if (!evaluating) {
    results.emplace_back().program = &program;
    results.back().limits = limits;
  }
  const bool one_thread = streams && transport.queues();
  if (streams) streams->begin(program, rank, one_thread);
  place += place % 2;  // even, also after an op that threw
  if (one_thread) {
    told([&] {
      check_room(program);
      transport.prepare(channels_of(program, rank));
    });
    queue_ops();
  } else {
    run_threads(step);
  }
  if (streams) streams->finish();
  state = nullptr;
  times = step.take_times();
  timed = !streams;
  try {
    step.rethrow();
  } catch (const LostPeer& lost) {
    leave(lost);
  }
}

void Runner::Impl::check_room(const Program& program) const {
  if (options.processors == 0) return;
  const std::string lacks = lacks_processors(waiting_kernels(program, rank), options.processors);
  if (!lacks.empty())
    throw InputError("layout", "", lacks,
                     "use fewer ranks on the other side of a boundary, or bridge leader");
}

// Runs `call`, which is outside any op. An error ends the other ranks, too.
void Runner::Impl::told(const std::function<void()>& call) {
  try {
    call();
  } catch (const LostPeer& lost) {
    leave(lost);
  } catch (const std::exception& error) {
    transport.abort(error.what());
    throw;
  }
}

// Ends a rank after a peer was lost. Only abort() ends what a device is waiting for, and which ops
// these are is known only before that.
void Runner::Impl::leave(const LostPeer& lost) {
  if (!streams) throw lost;
  const std::string what = lost.what() + streams->unended();
  transport.abort(what);
  throw LostPeer(lost.rank, what);
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
    if (!thread) thread = std::make_unique<StreamThread>(stream);
    thread->start([this, &list = ops] { run_ops(list); });
    started.push_back(thread.get());
  }
  if (compute_ops) run_ops(*compute_ops);
  for (StreamThread* thread : started) thread->wait();
}

void Runner::Impl::run_ops(const std::vector<OpId>& ops) {
  guarded([&] {
    for (const OpId id : ops) run_launch({id}, {});
  });
}

void Runner::Impl::queue_ops() {
  guarded([&] {
    const Program& program = state->program();
    const QueueOrder order(program, rank);
    RunAhead ahead(program, rank, options.run_ahead);
    for (const Launch& launch : order.launches()) {
      for (; ahead.too_far(); ahead.passed()) transport.await(streams->end_of(*ahead.too_far()));
      ++place;
      run_launch(launch, order.messages(launch));
      ++place;
      if (launch.last) ahead.add(launch.op);
    }
  });
}

void Runner::Impl::guarded(const std::function<void()>& ops) {
  try {
    ops();
  } catch (const Stopped&) {
    // Another stream of this rank has failed and recorded the reason.
  } catch (const LostPeer&) {
    state->fail(std::current_exception());
  } catch (const std::exception& error) {
    state->fail(std::current_exception());
    // Peers and this rank's other streams must not wait for data that will not arrive.
    transport.abort(error.what());
  }
}

// Runs a launch or, on a device, queues it. Without a queue order, an op is one launch.
void Runner::Impl::run_launch(const Launch& launch, std::span<const MessageId> messages) {
  const OpId id = launch.op;
  const Op& op = state->program().ops[id.value];
  state->wait_for(op);
  if (options.watch) options.watch(id, true);
  const bool counted = computes_on_processor(op);
  const Seconds processor = counted ? processor_now() : Seconds(0), start = steady_now();
  {
    std::optional<c10::StreamGuard> on;
    if (streams) {
      on.emplace(stream_of(op, messages));
      streams->start(id, on->current_stream(), launch.first);
    }
    const NvtxRange range(options.ranges ? describe(state->program(), id) : "");
    const OpAnnotation annotation(state->program(), id);
    perform(launch, op, messages);
    if (streams) streams->end(id, on->current_stream(), launch.last);
  }
  OpTime time{id, start, steady_now()};
  if (counted) time.processor = processor_now() - processor;
  if (options.watch) options.watch(id, false);
  if (launch.last) state->finish(time);
}

c10::Stream Runner::Impl::stream_of(const Op& op, std::span<const MessageId> messages) {
  if (messages.empty()) return streams->of(op);
  const Message& ends = state->program().messages[messages.front().value];
  const bool sends = std::get<Exchange>(op.what).sends;
  return streams->of_messages(sends, sends ? ends.destination : ends.source);
}

void Runner::Impl::perform(const Launch& launch, const Op& op,
                           std::span<const MessageId> messages) {
  const OpId id = launch.op;
  if (const auto* what = std::get_if<Compute>(&op.what)) return compute(id, op, *what);
  if (const auto* what = std::get_if<Exchange>(&op.what))
    return exchange(launch, op, *what, messages);
  if (const auto* what = std::get_if<Collective>(&op.what)) return collective(*what);
  if (const auto* what = std::get_if<HostCopy>(&op.what)) return host_copy(op, *what);
  update();
}

Runner::Runner(Transport& transport, const Scenario& scenario, const Program& structure,
               const RunnerOptions& options)
    : impl_(std::make_unique<Impl>(transport, scenario, structure, options)) {}
Runner::~Runner() = default;

void Runner::begin_step(const Program& program, const Inputs& inputs, double learning_rate,
                        const Pace& pace, const StepLimits& limits) {
  impl_->inputs = &inputs;
  impl_->pace = &pace;
  impl_->limits = limits;
  impl_->evaluating = false;
  impl_->rate = learning_rate;
  impl_->run(program);
}

StepScalars Runner::end_step() {
  StepScalars scalars;
  impl_->told([&] { scalars = impl_->take_scalars(); });
  return scalars;
}

StepScalars Runner::train_step(const Program& program, const Inputs& inputs, double learning_rate,
                               const Pace& pace) {
  begin_step(program, inputs, learning_rate, pace);
  return end_step();
}

std::map<WorkId, Predicted> Runner::evaluate(const Program& program, const Inputs& inputs) {
  impl_->inputs = &inputs;
  impl_->pace = nullptr;
  impl_->evaluating = true;
  impl_->predictions.clear();
  impl_->run(program);
  if (!impl_->streams) return std::move(impl_->predictions);
  c10::Event done(impl_->options.device.type());
  done.record(default_stream(impl_->options.device));
  impl_->told([&] { impl_->transport.await(done); });
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
void Runner::set_updates(std::int64_t updates) {
  impl_->updates = updates;
  impl_->count.fill_(updates);
}

}  // namespace polyphony::exec
