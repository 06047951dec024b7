// The state of a Runner: internal to exec/runner/runner.cpp (streams, threads, the public
// functions) and exec/runner/runner_ops.cpp (what each kind of op does).
#pragma once

#include <c10/core/StreamGuard.h>

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "exec/on_device.h"
#include "exec/runner/chunk_set.h"
#include "exec/runner/device_streams.h"
#include "exec/runner/run_ahead.h"
#include "exec/runner/runner.h"
#include "exec/runner/step_state.h"
#include "exec/runner/stream_thread.h"
#include "shared/program/queue_order.h"

namespace polyphony::exec {

struct Runner::Impl {
  Transport& transport;
  Training training;
  Rank rank;
  RunnerOptions options;
  ChunkSet chunks;
  std::int64_t updates = 0;  // AdamW's step count as last read by the host
  torch::Tensor count;       // the same on the device, counting all that is queued; float
  std::map<std::string, std::unique_ptr<StreamThread>> threads;
  std::shared_ptr<DeviceStreams> streams;  // null on CPUs
  std::vector<OpTime> times;
  bool timed = true;  // `times` is up to date; a device's times are read on demand

  std::atomic<std::uint64_t> place{0};  // Transport::watch()

  // State of the step that is running.
  StepState* state = nullptr;
  const Inputs* inputs = nullptr;
  const Pace* pace = nullptr;
  bool evaluating = false;
  double rate = 0;
  StepLimits limits{};
  // One double: the loss of this rank's heads. The compute stream adds to it; the op that sums over
  // the world waits for that and reads it.
  torch::Tensor loss;
  // The results of a step. On a device the host reads them later, when the next step may be queued.
  struct Result {
    const Program* program = nullptr;
    StepLimits limits{};
    // Of each result that an op made for other ops, in order: its largest absolute value, which is
    // finite if all values are. Placed like `loss`.
    std::vector<std::pair<OpId, torch::Tensor>> finite;
    torch::Tensor values;  // over the world: loss, squared norm, and 0 if both are finite
    torch::Tensor here;    // `values` on the host, valid after `came`
    std::optional<c10::Event> came;
    std::optional<StepScalars> scalars;  // set at once on a CPU; else on demand
    std::vector<std::vector<torch::Tensor>>
        norms;  // by trained store: gradient norms, if on a device
  };
  std::deque<Result> results;  // of steps whose scalars are not taken yet; the last one runs
  std::map<WorkId, Predicted> predictions;

  Impl(Transport& transport_, const Scenario& scenario, const Program& structure,
       const RunnerOptions& options_)
      : transport(transport_),
        training(scenario.training),
        rank(transport_.rank()),
        options(options_),
        chunks(transport_, scenario, structure, options_.perturb, options_.pretrained,
               options_.device) {
    if (!options.device.is_cpu()) streams = std::make_shared<DeviceStreams>(options.device);
    count = torch::zeros({}, torch::dtype(torch::kFloat32).device(options.device));
    if (streams)
      transport.watch([this] { return place.load(); },
                      [held = streams] { return held->unended(); });
  }
  ~Impl() {
    if (streams) transport.watch({}, {});
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  void run(const Program& program);
  void check_room(const Program& program) const;
  void run_threads(const StepState& step);
  void told(const std::function<void()>& call);
  [[noreturn]] void leave(const LostPeer& lost);
  void run_ops(const std::vector<OpId>& ops);
  void queue_ops();
  void guarded(const std::function<void()>& ops);
  void run_launch(const Launch& launch, std::span<const MessageId> messages);
  c10::Stream stream_of(const Op& op, std::span<const MessageId> messages);
  // False for emulated compute, which sleeps, and on a GPU, whose work is not the processor's.
  bool computes_on_processor(const Op& op) const {
    const bool computes =
        std::holds_alternative<Compute>(op.what) || std::holds_alternative<Update>(op.what);
    return computes && options.device.is_cpu() && (pace == nullptr || pace->empty());
  }
  void perform(const Launch& launch, const Op& op, std::span<const MessageId> messages);
  void compute(OpId id, const Op& op, const Compute& what);
  void forward(OpId id, const Op& op, const Compute& what, HeldChunk& held);
  void backward(OpId id, const Op& op, const Compute& what, HeldChunk& held);
  void exchange(const Launch& launch, const Op& op, const Exchange& what,
                std::span<const MessageId> messages);
  void collective(const Collective& what);
  void host_copy(const Op& op, const HostCopy& what);
  void update();
  torch::Tensor step_scalars();
  void keep_scalars(const torch::Tensor& values);
  StepScalars read(const Result& result);
  StepScalars take_scalars();
  template <class Visit>
  void each_trained(Visit visit);
  void note_finite(OpId id, const torch::Tensor& made);
  std::string not_finite(const Result& result);
  void use_here(const torch::Tensor& tensor) const;
  torch::Tensor take(BufferId buffer);
  torch::Tensor empty_rows(std::int64_t width) const { return torch::zeros({0, width}, format()); }
  torch::TensorOptions format() const {
    return torch::dtype(torch_dtype(state->program().precision)).device(options.device);
  }
  template <class Visit>
  void each_use(const Op& op, Use use, BufferKind kind, Visit visit) const;
};

template <class Visit>
void Runner::Impl::each_trained(Visit visit) {
  for (HeldChunk& held : chunks.all())
    for (HeldGroup& group : held.parameters)
      if (group.store->trains()) visit(group);
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

}  // namespace polyphony::exec
