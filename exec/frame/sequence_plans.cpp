#include "exec/frame/sequence_plans.h"

#include <numeric>

#include "exec/attention/rotary.h"
#include "exec/attention/window.h"
#include "exec/context_parallel/context_attention.h"
#include "exec/context_parallel/head_exchange.h"
#include "shared/error.h"

namespace polyphony::exec {

using torch::Tensor;

namespace {

// Plans for blocks that attend to whole samples, and for those with windows.
Tensor whole_angles(const Module& module, const WorkInput& data) {
  const int width = module.rotary_dim > 0 ? module.rotary_dim : module.head_dim;
  return text_angles(module, data.positions, width, module.rope_theta, true);
}
Tensor window_angles(const Module& module, const WorkInput& data) {
  const double own = module.local_rope_theta;
  const bool part = module.rotary_dim > 0 && module.key_value_rank == 0;
  return text_angles(module, data.positions, part ? module.rotary_dim : module.head_dim,
                     own > 0 ? own : module.rope_theta, own == 0);
}

// Layers that use by_sample() (exec/mixers/causal_convolution.h).
bool reads_by_sample(const Module& module) {
  for (int block = 0; block < module.layers; ++block) {
    const AttentionKind kind = block_at(module, block).attention;
    if (kind == AttentionKind::linear || kind == AttentionKind::convolution) return true;
  }
  return false;
}

// Multiplies what queries and keys are rotated by.
void scale_rotation(SequencePlan::Bucket& bucket, double factor) {
  if (!bucket.cosine.defined()) return;
  bucket.cosine.mul_(factor);
  bucket.sine.mul_(factor);
}
void scale_rotation(SequencePlan& plan, double factor) {
  for (SequencePlan::Bucket& bucket : plan.buckets) scale_rotation(bucket, factor);
  scale_rotation(plan.own, factor);
  if (!plan.context) return;
  auto context = std::make_shared<ContextPlan>(*plan.context);
  scale_rotation(context->rows, factor);
  plan.context = context;
}

// Plans for a language module's blocks that attend to `window` rows, or to all (0).
SequencePlan plan_text(const Module& module, const WorkInput& data, const Tensor& angles,
                       std::int64_t window, torch::Dtype dtype, InnerGroup& context,
                       AttentionWay way) {
  SequencePlan plan;
  if (context.size() == 1 && module.mask != Mask::causal) {
    plan = plan_masked(data.mask, window, way.row_split, angles.device());
    add_rotation(plan, angles, dtype);
  } else if (context.size() == 1) {
    plan = plan_causal(data.lengths, angles, dtype, window, way.row_split);
    if (!angles.is_cpu() && reads_by_sample(module))
      plan.side_by_side =
          std::make_shared<const SequencePlan>(plan_side_by_side(data.lengths, angles.device()));
  } else if (way.context == ContextAttention::ulysses) {
    plan = plan_exchange(data, context, angles, dtype, window, way.row_split);
  } else {
    plan.context = plan_context(data, context, angles, dtype, way, window);
  }
  // YaRN; blocks with frequencies of their own stay.
  if (module.rope_attention != 1 && (window == 0 || module.local_rope_theta == 0))
    scale_rotation(plan, module.rope_attention);
  return plan;
}

}  // namespace

std::int64_t sequence_length(const Module& module, const WorkInput& data) {
  const auto sum = [](const std::vector<std::int64_t>& lengths) {
    return std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  };
  const auto images = static_cast<std::int64_t>(data.images.size());
  switch (module.kind) {
    case ModuleKind::vision:
      return sum(data.image_lengths()) + (module.class_token ? images : 0);
    case ModuleKind::audio:
      return sum(data.audio_lengths);
    case ModuleKind::projector:
      return sum(module.source == ModuleKind::audio ? data.audio_lengths : data.image_lengths()) /
             merged_rows(module);
    case ModuleKind::language:
      return sum(data.lengths);
    case ModuleKind::diffusion:
      return sum(data.latent_lengths);
  }
  POLYPHONY_CHECK(false, "no layers for " << polyphony::name(module.kind));
}

SequencePlan plan_sequences(const Module& module, const WorkInput& data,
                            const torch::TensorOptions& format, InnerGroup& context,
                            AttentionWay way) {
  const auto dtype = c10::typeMetaToScalarType(format.dtype());
  switch (module.kind) {
    case ModuleKind::vision: {
      std::vector<std::int64_t> lengths = data.image_lengths();
      for (std::int64_t& length : lengths) length += module.class_token ? 1 : 0;
      SequencePlan plan = plan_images(lengths, format.device());
      if (module.rotary)
        add_rotation(plan, patch_angles(module, data.images, format.device()), dtype);
      return plan;
    }
    case ModuleKind::audio:
      return plan_images(data.audio_lengths, format.device());
    case ModuleKind::language:
      return plan_text(module, data, whole_angles(module, data), 0, dtype, context, way);
    case ModuleKind::diffusion:
      return plan_images(data.latent_lengths, format.device());
    case ModuleKind::projector:
      return {};
      break;
  }
  POLYPHONY_CHECK(false, "no layers for " << polyphony::name(module.kind));
}

SequencePlan plan_windows(const Module& module, const WorkInput& data,
                          const torch::TensorOptions& format, InnerGroup& context,
                          AttentionWay way) {
  const auto dtype = c10::typeMetaToScalarType(format.dtype());
  if (module.kind == ModuleKind::language && module.sliding_window > 0)
    return plan_text(module, data, window_angles(module, data), module.sliding_window, dtype,
                     context, way);
  if (module.window == 0) return {};
  SequencePlan plan = plan_windows(data.images, module.window, format.device());
  if (module.rotary) add_rotation(plan, patch_angles(module, data.images, format.device()), dtype);
  return plan;
}

}  // namespace polyphony::exec
