#include "shared/cost/kernel_times.h"

#include "shared/cost/unfused.h"

namespace polyphony {
namespace {

double correction(const HardwareProfile& profile, LayerKind layer, Phase phase) {
  const auto found = profile.corrections.find({layer, phase});
  return found == profile.corrections.end() ? 1.0 : found->second;
}

// Returns true if kernel i is the activation between the two grouped GEMMs of the experts.
bool between_experts(const std::vector<Kernel>& kernels, std::size_t i) {
  const auto grouped = [&](std::size_t k) { return kernels[k].experts; };
  return i > 0 && i + 1 < kernels.size() && kernels[i].kind == KernelKind::elementwise &&
         grouped(i - 1) && grouped(i + 1);
}

// With masked_images, the images of a microbatch are one masked sequence, and all its pairs are
// computed: the square of the sum of their lengths. Images are assumed to have equal lengths.
Kernel masked(const Kernel& kernel, const Module& module, const SoftwareStack& stack) {
  Kernel all = kernel;
  if (stack.masked_images && module.kind == ModuleKind::vision &&
      kernel.kind == KernelKind::attention)
    all.flops = all.flops * static_cast<double>(kernel.launches);
  return all;
}

}  // namespace

std::optional<TimedKernel> timed_kernel(const Module& module, const Expansion& inside,
                                        std::size_t index, Phase phase, const ChunkContext& context,
                                        const HardwareProfile& profile) {
  if (profile.stack.fused_experts && between_experts(inside.kernels, index)) return {};
  TimedKernel timed{masked(inside.kernels[index], module, profile.stack), {}, {}};
  const Kernel& kernel = timed.kernel;
  const bool tail = kernel.kind == KernelKind::attention && kernel.n == 1;  // forward
  timed.time = kernel_time(profile, kernel, context.precision) *
               correction(profile, kernel.layer, phase) * (tail ? context.tail : 1);
  timed.host = launch_time(profile, kernel);
  return timed;
}

std::vector<TimedKernel> unfused_kernels(const Module& module, const Expansion& inside, int layer,
                                         Phase phase, const WorkSize& size,
                                         const ChunkContext& context,
                                         const HardwareProfile& profile) {
  std::vector<TimedKernel> all;
  if (!profile.stack.unfused || inside.kernels.empty()) return all;
  const LayerKind kind = inside.kernels.front().layer;
  const auto add = [&](Phase of) {
    const Kernel kernel =
        unfused_passes(module, kind, of, size, context, profile.stack.memory.dropout);
    all.push_back(
        {kernel, kernel_time(profile, kernel, context.precision), launch_time(profile, kernel)});
  };
  add(phase);
  if (phase != Phase::forward && phase != Phase::backward_weight &&
      recompute_of(kind, layer, context.recompute, context.recomputed) == Recompute::full)
    add(Phase::recompute);
  return all;
}

}  // namespace polyphony
