#include "shared/cost/kernel_groups.h"

#include "shared/chunk/expand_layer.h"
#include "shared/cost/attention_tail.h"
#include "shared/cost/compute_time.h"
#include "shared/cost/kernel_times.h"
#include "shared/cost/update_bytes.h"
#include "shared/hardware/cast_time.h"
#include "shared/program/expand_op.h"

namespace polyphony {
namespace {

KernelGroup group_of(const Kernel& kernel) {
  switch (kernel.kind) {
    case KernelKind::gemm:
      return kernel.experts ? KernelGroup::grouped_gemm : KernelGroup::gemm;
    case KernelKind::attention:
      return kernel.n > 1 ? KernelGroup::attention_backward : KernelGroup::attention_forward;
    case KernelKind::elementwise:
    case KernelKind::embedding:
    case KernelKind::loss:
      break;
  }
  return KernelGroup::memory_bound;
}

class Adder {
 public:
  Adder(const Program& program, const HardwareProfile& profile)
      : program_(program), profile_(profile) {
    profile_.dispatch = Seconds(0);
  }

  void add(const Compute& compute) {
    const Module& module = program_.model.modules[compute.module.value];
    const WorkSize& size = program_.size_of(compute.work, compute.module);
    ChunkContext context = chunk_context(program_, compute);
    context.tail = attention_tail(program_, compute, profile_);
    for (int layer = compute.layers.begin; layer < compute.layers.end;) {
      const int next = end_of_alike(module, compute.layers, layer, size, context);
      const Expansion inside =
          expand_layer(module, compute.layers, layer, compute.phase, size, context);
      for (std::size_t i = 0; i < inside.kernels.size(); ++i)
        if (const auto timed = timed_kernel(module, inside, i, compute.phase, context, profile_))
          add(*timed, next - layer);
      for (const TimedKernel& timed :
           unfused_kernels(module, inside, layer, compute.phase, size, context, profile_))
        add(timed, next - layer);
      layer = next;
    }
  }

  void add(const Update& update) {
    all_.of[place(KernelGroup::optimizer)] +=
        moved_by_update(program_, update) /
        (profile_.device.memory_rate * profile_.optimizer_bytes_efficiency);
  }

  const GroupTimes& all() const { return all_; }

 private:
  void add(const TimedKernel& timed, int layers) {
    const KernelGroup group = group_of(timed.kernel);
    const Seconds cast = cast_time(profile_, timed.kernel);
    all_.of[place(group)] += (timed.time - cast) * layers;
    all_.of[place(KernelGroup::memory_bound)] += cast * layers;
    all_.linear_attention |= timed.kernel.kind == KernelKind::attention && timed.kernel.n == 0;
    const Flops flops = timed.kernel.flops * static_cast<double>(layers);
    if (group == KernelGroup::gemm) all_.gemm_flops += flops;
    if (group == KernelGroup::grouped_gemm) all_.grouped_flops += flops;
  }

  const Program& program_;
  HardwareProfile profile_;
  GroupTimes all_;
};

}  // namespace

GroupTimes group_times(const Program& program, Rank rank, const HardwareProfile& profile) {
  Adder adder(program, profile);
  const Range ops = program.ops_of(rank);
  for (std::uint32_t i = ops.begin; i < ops.end; ++i) {
    const Op& op = program.ops[i];
    if (const auto* compute = std::get_if<Compute>(&op.what)) adder.add(*compute);
    if (const auto* update = std::get_if<Update>(&op.what)) adder.add(*update);
  }
  return adder.all();
}

}  // namespace polyphony
