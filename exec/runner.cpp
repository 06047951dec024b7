#include "exec/runner.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "exec/step_state.h"
#include "exec/stream_thread.h"
#include "shared/error.h"
#include "shared/plan/boundaries.h"

namespace polyphony::exec {
namespace {

torch::Dtype torch_dtype(NumberFormat format) {
  POLYPHONY_CHECK(format == NumberFormat::fp32 || format == NumberFormat::fp64,
                  name(format) << " reached the executor; check_runnable() refuses it");
  return format == NumberFormat::fp64 ? torch::kFloat64 : torch::kFloat32;
}

// One chunk that this rank holds, its gradients in one flat tensor so that a reduction is one call.
struct Held {
  ParamGroup group;
  std::unique_ptr<Chunk> chunk;
  torch::Tensor flat_gradient;
  ShardIndex shard;
  bool counts = true;  // this data-parallel replica is the one that the global norm counts
};

// Width of what enters or leaves a chunk, for empty boundaries.
std::int64_t input_width(const Model& model, const ParamGroup& group) {
  if (group.layers.begin > 0) return model.modules[group.module.value].hidden;
  for (const Edge& edge : model.edges)
    if (edge.to == group.module) return output_width(model.modules[edge.from.value]);
  return model.modules[group.module.value].hidden;
}

// The model edges that a chunk's inputs come over, in order.
std::vector<int> edges_into(const Model& model, const ParamGroup& group) {
  std::vector<int> edges;
  for (std::size_t e = 0; e < model.edges.size(); ++e)
    if (model.edges[e].to == group.module && group.layers.begin == 0)
      edges.push_back(static_cast<int>(e));
  return edges;
}

bool has_input(const Model& model, ModuleId module) {
  return std::any_of(model.edges.begin(), model.edges.end(),
                     [&](const Edge& e) { return e.to == module; });
}

// Adds over the ops of one step; written by the compute stream, read by the op that sums over the
// world, which waits for it.
struct Sums {
  double loss = 0;
};

}  // namespace

Seconds steady_now() { return std::chrono::steady_clock::now().time_since_epoch(); }

struct Runner::Impl {
  Transport& transport;
  Training training;
  Rank rank;
  Model model;
  torch::Dtype dtype;
  RunnerOptions options;
  std::vector<std::unique_ptr<Communicator>>
      groups;  // by GroupId; null where this rank is no member
  std::vector<Held> held;
  std::map<std::pair<ModuleId, std::uint16_t>, Held*> by_chunk;  // module, first layer
  std::unique_ptr<AdamW> optimizer;
  std::map<std::string, std::unique_ptr<StreamThread>> threads;
  std::vector<OpTime> times;

  // Of the step that runs.
  StepState* state = nullptr;
  const Inputs* inputs = nullptr;
  const Pace* pace = nullptr;
  bool evaluating = false;
  double rate = 0;
  Sums sums;
  StepScalars scalars;
  std::map<WorkId, torch::Tensor> predictions;

  Impl(Transport& transport_, const Scenario& scenario, const Program& structure,
       const RunnerOptions& options_);
  void make_chunks(const Scenario& scenario, const Program& structure);
  void run(const Program& program);
  void run_stream(const std::vector<OpId>& ops);
  void perform(OpId id, const Op& op);
  void compute(OpId id, const Op& op, const Compute& what);
  void forward(const Op& op, const Compute& what, Held& chunk);
  void backward(const Op& op, const Compute& what, Held& chunk);
  void exchange(const Exchange& what);
  void collective(const Collective& what);
  void update();
  torch::Tensor step_scalars();
  BufferId boundary_use(const Op& op, Use use, BufferKind kind) const;
  torch::Tensor empty_rows(std::int64_t width) const { return torch::zeros({0, width}, dtype); }
};

Runner::Impl::Impl(Transport& transport_, const Scenario& scenario, const Program& structure,
                   const RunnerOptions& options_)
    : transport(transport_),
      training(scenario.training),
      rank(transport_.rank()),
      model(structure.model),
      dtype(torch_dtype(structure.precision)),
      options(options_) {
  for (std::size_t g = 0; g < structure.groups.size(); ++g) {
    const std::vector<Rank>& members = structure.groups[g].members;
    const bool mine = std::find(members.begin(), members.end(), rank) != members.end();
    groups.push_back(mine ? transport.make_group("group" + std::to_string(g), members) : nullptr);
  }
  make_chunks(scenario, structure);
}

void Runner::Impl::make_chunks(const Scenario& scenario, const Program& structure) {
  std::map<std::pair<ModuleId, std::uint16_t>, GroupId> tensor_groups;
  const Range mine = structure.rank_ops[rank.value];
  for (std::uint32_t i = mine.begin; i < mine.end; ++i)
    if (const auto* what = std::get_if<Compute>(&structure.ops[i].what))
      tensor_groups[{what->module, what->layers.begin}] = structure.ops[i].group;
  std::vector<LocalParameter*> all;
  for (const ParamGroup& group : structure.params) {
    if (group.rank != rank) continue;
    const ModuleLayout& layout = structure.layout.modules[group.module.value];
    const GroupId tensor_group = tensor_groups[{group.module, group.layers.begin}];
    ChunkOptions chunk_options;
    chunk_options.dtype = dtype;
    chunk_options.seed = scenario.training.seed;
    chunk_options.trainable = group.trainable;
    chunk_options.input_grad = input_grad_wanted(model, {group.module, group.layers});
    chunk_options.recompute = layout.recompute == Recompute::full;
    chunk_options.input_edges = edges_into(model, group);
    chunk_options.perturb = options.perturb;
    Held entry{
        group,
               nullptr,
               {},
               {.tensor = layout.tp,
                .tensor_index = (static_cast<int>(rank.value) - layout.first_rank) % layout.tp},
               true};
    entry.chunk = std::make_unique<Chunk>(
        model.modules[group.module.value], group.layers,
        Communicators{.tensor = tensor_group.valid() ? groups[tensor_group.value].get() : nullptr},
        entry.shard, chunk_options);
    if (group.replicas.valid())
      entry.counts = structure.groups[group.replicas.value].members.front() == rank;
    if (group.trainable) {
      std::int64_t total = 0;
      for (const LocalParameter& parameter : entry.chunk->parameters())
        total += parameter.value.numel();
      entry.flat_gradient = torch::zeros({total}, dtype);
      std::int64_t offset = 0;
      for (LocalParameter& parameter : entry.chunk->parameters()) {
        const std::int64_t size = parameter.value.numel();
        parameter.grad = entry.flat_gradient.narrow(0, offset, size).view(parameter.value.sizes());
        offset += size;
        all.push_back(&parameter);
      }
    }
    held.push_back(std::move(entry));
  }
  for (Held& entry : held) by_chunk[{entry.group.module, entry.group.layers.begin}] = &entry;
  optimizer = std::make_unique<AdamW>(
      all, AdamWOptions{training.beta1, training.beta2, training.epsilon, training.weight_decay});
}

void Runner::Impl::run(const Program& program) {
  StepState step(program, rank);
  state = &step;
  sums = {};
  const std::vector<OpId>* compute_ops = nullptr;
  std::vector<StreamThread*> started;
  for (const auto& [stream, ops] : step.streams()) {
    if (stream == "compute") {
      compute_ops = &ops;
      continue;
    }
    std::unique_ptr<StreamThread>& thread = threads[stream];
    if (!thread) thread = std::make_unique<StreamThread>();
    thread->start([this, &list = ops] { run_stream(list); });
    started.push_back(thread.get());
  }
  if (compute_ops) run_stream(*compute_ops);
  for (StreamThread* thread : started) thread->wait();
  state = nullptr;
  times = step.take_times();
  step.rethrow();
}

void Runner::Impl::run_stream(const std::vector<OpId>& ops) {
  try {
    for (const OpId id : ops) {
      const Op& op = state->program().ops[id.value];
      state->wait_for(op);
      const Seconds start = steady_now();
      perform(id, op);
      state->finish(id, start, steady_now());
    }
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

void Runner::Impl::perform(OpId id, const Op& op) {
  if (const auto* what = std::get_if<Compute>(&op.what)) return compute(id, op, *what);
  if (const auto* what = std::get_if<Exchange>(&op.what)) return exchange(*what);
  if (const auto* what = std::get_if<Collective>(&op.what)) return collective(*what);
  update();
}

BufferId Runner::Impl::boundary_use(const Op& op, Use use, BufferKind kind) const {
  const Program& program = state->program();
  for (std::uint32_t u = op.buffers.begin; u < op.buffers.end; ++u) {
    const BufferUse& entry = program.buffer_uses[u];
    if (entry.use == use && program.buffers[entry.buffer.value].kind == kind) return entry.buffer;
  }
  return {};
}

void Runner::Impl::compute(OpId id, const Op& op, const Compute& what) {
  const Seconds start = steady_now();
  Held& chunk = *by_chunk.at({what.module, what.layers.begin});
  chunk.chunk->take_issued();
  switch (what.phase) {
    case Phase::forward:
      forward(op, what, chunk);
      break;
    case Phase::recompute:
      chunk.chunk->rebuild(what.work.value);
      break;
    case Phase::backward:
    case Phase::backward_input:
      backward(op, what, chunk);
      break;
    case Phase::backward_weight:
      chunk.chunk->backward_weight(what.work.value);
      break;
  }
  if (options.check_collectives && !evaluating) {
    const std::vector<InnerCollective> issued = chunk.chunk->take_issued();
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

void Runner::Impl::forward(const Op& op, const Compute& what, Held& chunk) {
  const WorkInput& data = (*inputs)(what.work);
  const BufferId from = boundary_use(op, Use::read, BufferKind::boundary);
  torch::Tensor input;
  if (from.valid()) {
    input = std::move(state->tensor(from));
  } else if (what.layers.begin > 0 || has_input(model, what.module)) {
    input = empty_rows(input_width(model, chunk.group));
  }
  const bool head = what.module == language_module(model) &&
                    what.layers.end == layers(model.modules[what.module.value]).size();
  if (head && evaluating) {
    predictions[what.work] = chunk.chunk->predict({input}, data);
    return;
  }
  torch::Tensor output = chunk.chunk->forward(what.work.value, input, data);
  if (evaluating || !needs_backward(model, what.module)) chunk.chunk->drop(what.work.value);
  if (head) {
    if (chunk.shard.tensor_index == 0) sums.loss += output.item<double>();
    return;
  }
  const BufferId to = boundary_use(op, Use::write, BufferKind::boundary);
  if (to.valid()) state->tensor(to) = std::move(output);
}

void Runner::Impl::backward(const Op& op, const Compute& what, Held& chunk) {
  const BufferId from = boundary_use(op, Use::read, BufferKind::boundary_gradient);
  const Module& module = model.modules[what.module.value];
  torch::Tensor gradient;
  if (from.valid()) {
    gradient = std::move(state->tensor(from));
  } else if (what.module != language_module(model) || what.layers.end != layers(module).size()) {
    gradient = empty_rows(output_width(module));
  }
  const std::vector<torch::Tensor> gradients =
      what.phase == Phase::backward ? chunk.chunk->backward(what.work.value, gradient)
                                    : chunk.chunk->backward_input(what.work.value, gradient);
  torch::Tensor input_gradient = gradients.empty() ? torch::Tensor() : gradients.front();
  const BufferId to = boundary_use(op, Use::write, BufferKind::boundary_gradient);
  if (to.valid()) state->tensor(to) = std::move(input_gradient);
}

void Runner::Impl::exchange(const Exchange& what) {
  const Program& program = state->program();
  std::vector<Transfer> transfers;
  transfers.reserve(what.messages.size());
  torch::Tensor whole;
  for (std::uint32_t i = what.messages.begin; i < what.messages.end; ++i) {
    const MessageId id = program.exchange_messages[i];
    const Message& message = program.messages[id.value];
    const Buffer& buffer = program.buffers[(what.sends ? message.from : message.to).value];
    if (!whole.defined()) {
      torch::Tensor& slot = state->tensor(what.sends ? message.from : message.to);
      if (!what.sends) slot = torch::empty({buffer.rows, buffer.width}, dtype);
      whole = slot.contiguous();
      slot = what.sends ? torch::Tensor() : whole;
    }
    POLYPHONY_CHECK(whole.size(0) == buffer.rows, "an exchange's buffer has " << buffer.rows
                                                                              << " rows, tensor "
                                                                              << whole.size(0));
    const std::int64_t row = what.sends ? message.from_row : message.to_row;
    transfers.push_back({whole.narrow(0, row, message.rows),
                         what.sends ? message.destination : message.source, id.value, what.sends});
  }
  transport.exchange(transfers);
}

torch::Tensor Runner::Impl::step_scalars() {
  double squares = 0;
  for (const Held& entry : held)
    if (entry.group.trainable && entry.counts)
      squares += squared_norm(
          entry.chunk->parameters(),
          entry.shard);
  const bool finite = std::isfinite(squares) && std::isfinite(sums.loss);
  return torch::tensor({sums.loss, squares, finite ? 0.0 : 1.0}, torch::kFloat64);
}

void Runner::Impl::collective(const Collective& what) {
  Communicator& group = *groups[what.group.value];
  if (!what.params.valid()) {
    torch::Tensor values = step_scalars();
    group.all_reduce(values, Reduction::sum);
    const double* v = values.const_data_ptr<double>();
    scalars = {v[0], std::sqrt(v[1]), v[2] == 0.0};
    return;
  }
  const ParamGroup& params = state->program().params[what.params.value];
  group.all_reduce(by_chunk.at({params.module, params.layers.begin})->flat_gradient,
                   Reduction::sum);
}

void Runner::Impl::update() {
  if (transport.world_size() == 1) {
    const torch::Tensor values = step_scalars();
    const double* v = values.const_data_ptr<double>();
    scalars = {v[0], std::sqrt(v[1]), v[2] == 0.0};
  }
  if (!scalars.finite) {
    for (Held& entry : held)
      if (entry.group.trainable) zero_gradients(entry.chunk->parameters());
    return;
  }
  // The 1e-6 and the clamp are those of torch.nn.utils.clip_grad_norm_, so that runs compare.
  const double clip = training.clip_norm > 0
                          ? std::min(1.0, training.clip_norm / (scalars.gradient_norm + 1e-6))
                          : 1.0;
  optimizer->step(rate, clip);
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
  return std::move(impl_->predictions);
}

const std::vector<OpTime>& Runner::times() const { return impl_->times; }

std::vector<Chunk*> Runner::chunks() {
  std::vector<Chunk*> list;
  for (Held& entry : impl_->held) list.push_back(entry.chunk.get());
  return list;
}

AdamW& Runner::optimizer() { return *impl_->optimizer; }

}  // namespace polyphony::exec
