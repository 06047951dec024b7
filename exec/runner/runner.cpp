#include "exec/runner/runner.h"

#include "exec/runner/runner_impl.h"
#include "exec/system/process.h"
#include "shared/error.h"

namespace polyphony::exec {

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
  if (impl_->streams) impl_->transport.await(default_stream(impl_->options.device));
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
