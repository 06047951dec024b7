#include "shared/cost/compute_time.h"

#include <algorithm>
#include <numeric>

#include "shared/chunk/expand_layer.h"
#include "shared/cost/attention_tail.h"
#include "shared/cost/degraded.h"
#include "shared/cost/kernel_times.h"
#include "shared/cost/op_layers.h"
#include "shared/cost/overlap.h"
#include "shared/cost/update_bytes.h"
#include "shared/error.h"
#include "shared/layers/self_attention.h"
#include "shared/program/expand_op.h"

namespace polyphony {
namespace {

// Returns the fraction of the attention that overlaps with transfers of keys or their gradients. In
// the forward pass, nothing is transferred during the attention to the last keys. In the backward
// pass, gradients are transferred during it, except in a ring of two ranks, whose gradients return
// alone.
double overlapped_attention(const Kernel& attention, const Module& module,
                            const ChunkContext& context) {
  const double parts = key_parts(module, context);
  const bool forward = attention.n == 1;
  const bool pair = context.cp_attention == ContextAttention::ring && context.cp == 2;
  return forward || pair ? 1 - 1 / parts : 1;
}

// Returns the position of the last collective of a ring's backward pass, which transfers gradients;
// the last of its cp − 1 hops does not overlap with attention. Returns the size of the list if
// there is none.
std::size_t last_round(const Expansion& inside, Phase phase, const ChunkContext& context) {
  const std::vector<InnerCollective>& all = inside.collectives;
  const bool backward = phase == Phase::backward || phase == Phase::backward_input;
  if (!backward || context.cp_attention != ContextAttention::ring) return all.size();
  std::size_t last = all.size();
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].beside_attention) last = i;
  return last;
}

// Returns the time of a layer as predicted from its kernels and inner collectives.
Seconds predicted_time(const Module& module, LayerRange chunk, int layer, Phase phase,
                       const WorkSize& size, const ChunkContext& context, const InnerRings& rings,
                       const HardwareProfile& profile) {
  const Expansion inside = expand_layer(module, chunk, layer, phase, size, context);
  Seconds total{}, host{}, products{}, attention{};
  bool routed = false;
  std::vector<Seconds> times(inside.kernels.size());
  for (std::size_t i = 0; i < inside.kernels.size(); ++i) {
    const auto timed = timed_kernel(module, inside, i, phase, context, profile);
    if (!timed) continue;
    const auto& [kernel, time, launch] = *timed;
    total += time;
    times[i] = time;
    if (kernel.kind == KernelKind::gemm) products += time;
    if (kernel.kind == KernelKind::attention)
      attention += time * overlapped_attention(kernel, module, context);
    host += launch;
    routed |= kernel.experts;
  }
  for (const TimedKernel& timed :
       unfused_kernels(module, inside, layer, phase, size, context, profile)) {
    total += timed.time;
    host += timed.host;
  }
  total = std::max(total, host);
  if (routed && phase == Phase::forward && context.ep > 1 && profile.stack.one_copy &&
      !profile.counts_on_device)
    total += profile.stack.routing;
  Seconds tensor{}, passed{}, hidden{};
  const SoftwareStack& stack = profile.stack;
  const double taken = taken_by(stack, rings.tensor.nodes);
  const std::size_t round_home = last_round(inside, phase, context);
  for (std::size_t i = 0; i < inside.collectives.size(); ++i) {
    const InnerCollective& collective = inside.collectives[i];
    const bool over_tensor = collective.group == GroupKind::tensor;
    const Ring& ring = collective.group == GroupKind::context  ? rings.context
                       : collective.group == GroupKind::expert ? rings.expert
                                                               : rings.tensor;
    const Seconds alone = ring_time(ring, collective.kind, collective.bytes);
    const auto hide = [&](Seconds compute) {
      const Overlap both = overlap(alone, compute, taken);
      hidden += both.exposed + both.delayed;
      products -= std::min(products, compute);
    };
    if (!collective.beside.empty()) {  // one chunk overlaps with the GEMM of another
      const auto [begin, end] = collective.beside;
      hide(std::accumulate(times.begin() + begin, times.begin() + end, Seconds(0)));
      continue;
    }
    // Weight gradients that are a separate op run later and cannot hide the collective.
    const bool overlaps_gemm =
        collective.may_hide == Beside::input_gradient ||
        (collective.may_hide == Beside::weight_gradient && phase == Phase::backward);
    if (overlaps_gemm && stack.tensor_overlap > 0) {
      hide(stack.tensor_overlap * kernel_time(profile, collective.product, context.precision));
      continue;
    }
    Seconds& sum = collective.beside_attention ? passed : !over_tensor ? total : tensor;
    const Seconds home = i == round_home ? alone / (context.cp - 1) : Seconds(0);
    sum += alone - home;
    total += home;
  }
  const Overlap round = overlap(passed, attention, taken_by(stack, rings.context.nodes));
  const Overlap both = overlap(tensor, stack.pipelined * products, taken);
  return total + hidden + round.exposed + round.delayed + both.exposed + both.delayed;
}

Seconds layer_time(const Module& module, LayerRange chunk, int layer, Phase phase,
                   const WorkSize& size, const ChunkContext& context, const InnerRings& rings,
                   const HardwareProfile& profile) {
  const auto measured = measured_layer(profile.layer_times, module, layer, context.tp, context.cp);
  const auto predicted = [&](const ChunkContext& as) {
    return predicted_time(module, chunk, layer, phase, size, as, rings, profile);
  };
  if (!measured) {
    POLYPHONY_CHECK(!module.abstract.is || layer == 0 || layer > module.layers,
                    module.name << " has no measured time for layer " << layer);
    return predicted(context);
  }
  const MeasuredLayers& times = *measured->times;
  const auto time = [&](const MeasuredTime& of) { return measured->share * of.of(size.tokens); };
  if (phase == Phase::forward || phase == Phase::recompute) return time(times.forward);
  const BackwardParts parts = backward_parts(module, chunk, layer, phase, context);
  Seconds total{};
  if (parts.input && parts.input_gradient) total += time(times.backward_input);
  if (parts.weight) total += time(times.backward_weight);
  if (parts.again == Recompute::full) total += time(times.forward);
  if (parts.again == Recompute::selective) {  // the attention was not measured separately
    ChunkContext kept = context;
    kept.recompute = Recompute::none;
    total += std::max(Seconds(0), predicted(context) - predicted(kept));
  }
  return total;
}

// Returns the end of the run of layers from `layer` on that take the same time. Measured layers are
// not merged.
int end_of_equal(const Module& module, LayerRange chunk, int layer, const WorkSize& size,
                 const ChunkContext& context, const HardwareProfile& profile) {
  if (profile.layer_times.contains(module.name)) return layer + 1;
  return end_of_alike(module, chunk, layer, size, context);
}

Seconds update_time(const Program& program, const Update& update, const HardwareProfile& profile) {
  return profile.optimizer_overhead +
         moved_by_update(program, update) /
             (profile.device.memory_rate * profile.optimizer_bytes_efficiency);
}

// The inputs of the layer times of an op's chunk.
struct OpInside {
  const Module* module;
  ChunkContext context;
  InnerRings rings;
};
OpInside inside_of(const Program& program, const Op& op, const Compute& compute,
                   const Cluster& cluster, const HardwareProfile& profile) {
  const Module& module = program.model.modules[compute.module.value];
  const ChunkGroups groups = groups_of(program, op, compute);
  const auto ring = [&](GroupId group, const ExpertChoice& choices) {
    return group.valid() ? make_ring(program.groups[group.value].members, cluster, profile,
                                     Others::alike, choices)
                         : Ring{};
  };
  const ExpertChoice experts = profile.stack.one_copy
                                   ? ExpertChoice{module.experts_per_token, module.experts}
                                   : ExpertChoice{};
  OpInside inside{
      &module,
      chunk_context(program, compute),
      {ring(groups.tensor, {}), ring(groups.context, {}), ring(groups.expert, experts)}};
  inside.context.tail = attention_tail(program, compute, profile);
  return inside;
}

// Returns the duration of an op on devices that are not degraded.
Seconds healthy_time(const Program& program, const Op& op, OpId id, const Cluster& cluster,
                     const HardwareProfile& profile) {
  if (const auto* update = std::get_if<Update>(&op.what))
    return update_time(program, *update, profile);
  const auto* compute = std::get_if<Compute>(&op.what);
  POLYPHONY_CHECK(compute != nullptr, "op " << id.value << " is not a compute op");
  const OpInside inside = inside_of(program, op, *compute, cluster, profile);
  return profile.op_overhead + range_time(*inside.module, compute->layers, compute->phase,
                                          program.size_of(compute->work, compute->module),
                                          inside.context, inside.rings, profile);
}

}  // namespace

ChunkGroups groups_of(const Program& program, const Op& op, const Compute& compute) {
  if (!compute.params.valid()) return {op.group, {}, {}};
  const ParamGroup& params = program.params[compute.params.value];
  return {params.tensor, params.context, params.expert};
}

Seconds range_time(const Module& module, LayerRange range, Phase phase, const WorkSize& size,
                   const ChunkContext& context, const InnerRings& rings,
                   const HardwareProfile& profile) {
  Seconds total{};
  for (int layer = range.begin; layer < range.end;) {
    const int next = end_of_equal(module, range, layer, size, context, profile);
    total +=
        layer_time(module, range, layer, phase, size, context, rings, profile) * (next - layer);
    layer = next;
  }
  return total;
}

std::vector<Seconds> layer_times(const Module& module, LayerRange range, Phase phase,
                                 const WorkSize& size, const ChunkContext& context,
                                 const InnerRings& rings, const HardwareProfile& profile) {
  std::vector<Seconds> times;
  for (int layer = range.begin; layer < range.end;) {
    const int next = end_of_equal(module, range, layer, size, context, profile);
    times.insert(times.end(), static_cast<std::size_t>(next - layer),
                 layer_time(module, range, layer, phase, size, context, rings, profile));
    layer = next;
  }
  return times;
}

Seconds compute_time(const Program& program, OpId id, const Cluster& cluster,
                     const HardwareProfile& profile) {
  const Op& op = program.ops[id.value];
  if (const double slow = slowest_device(program, op, cluster); slow < 1)
    return healthy_time(program, op, id, cluster, slowed(profile, slow));
  return healthy_time(program, op, id, cluster, profile);
}

std::vector<Seconds> op_layer_times(const Program& program, OpId id, const Cluster& cluster,
                                    const HardwareProfile& profile) {
  const Op& op = program.ops[id.value];
  const auto* compute = std::get_if<Compute>(&op.what);
  POLYPHONY_CHECK(compute != nullptr, "op " << id.value << " has no layers");
  const OpInside inside = inside_of(program, op, *compute, cluster, profile);
  return layer_times(*inside.module, compute->layers, compute->phase,
                     program.size_of(compute->work, compute->module), inside.context, inside.rings,
                     profile);
}

Bytes moved_by_update(const Program& program, const Update& update) {
  const std::int64_t element = size_of(program.precision).value;
  Bytes moved{};
  for (std::uint32_t p = update.params.begin; p < update.params.end; ++p) {
    const ParamGroup& group = program.params[p];
    if (!group.trainable) continue;
    std::int64_t count = group.trained > 0 ? group.trained : group.bytes.value / element;
    if (group.shards.valid())
      count /= static_cast<std::int64_t>(program.groups[group.shards.value].members.size());
    moved += update_bytes(program.precision) * count;
  }
  return moved;
}

Bytes update_bytes(NumberFormat precision) {
  const Bytes element = size_of(precision);
  if (element < Bytes(4)) return 9 * Bytes(4) + element;
  return 9 * element;
}

}  // namespace polyphony
