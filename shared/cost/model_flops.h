// Model FLOPs of a step, by three definitions. MFU = FLOPs / (peak rate · ranks · step time).
//   model_flops       the FLOPs that the model needs for this batch, independent of the layout:
//                     real patches, packed lengths, only pairs that attend; no weight gradients of
//                     frozen modules, no backward pass where nothing upstream is trained; no
//                     recomputation and no work that tensor-parallel ranks repeat. 0 if a module is
//                     abstract
//   megatron_flops    as Megatron-LM prints: 72·B·L·s·h² (1 + s/(6h) + V/(12·L·h)) of the language
//                     module alone, on whole sequences, with the full square of attention and all
//                     modules trained. With the actual MLP, gates, experts and key/value heads:
//                     12·B·L·s·h² ((1 + K/A + s/h)·A·D/h + F/h·(3/2 if gated) + V/(2·L·h)).
//                     Megatron-LM from core 0.12 on counts half of causal attention (s/(2h)
//                     instead of s/h), each block by its kind: dense or of experts, with latent or
//                     (newer) gated or linear attention
//   torchtitan_flops  as torchtitan prints: s·B·(6·(N − embedding) + 6·L·A·(D + width of values)·s)
//                     of the language module: N parameters, of experts those that a token goes to;
//                     L blocks with attention
// B samples; s the longest language sequence of the batch, to which these frameworks pad; L blocks;
// h hidden width; A heads, K key/value heads of width D; F feed-forward width; V vocabulary.
// Sources: Narayanan et al., arXiv 2104.04473 eq. 3 (96 with recomputation, 72 without);
// NVIDIA/Megatron-LM, megatron/training/training.py, num_floating_point_operations, of core_v0.11.0
// (full), core_v0.12.0 and d98e8a64 (half);
// torchtitan 0.3.0, models/utils.py, get_moe_model_nparams_and_flops.
#pragma once

#include "shared/data/data.h"
#include "shared/hardware/cluster.h"
#include "shared/model/model.h"
#include "shared/units.h"

namespace polyphony {

// `precision` is that of the computation; `sequences` is B and `length` is s, as above.
Flops model_flops(const Model& model, const Batch& batch, NumberFormat precision);
enum class CountedAttention : std::uint8_t { full, half };
Flops megatron_flops(const Module& language, double sequences, double length,
                     CountedAttention counted = CountedAttention::full);
Flops torchtitan_flops(const Module& language, double sequences, double length);

}  // namespace polyphony
