// Model FLOPs of a step, and what frameworks print for it.
//   model_flops      (0 where a module is known by measured times alone)
//                    what the model asks of this batch, whatever the layout: real patches, packed
//                    lengths, attending pairs only; frozen parts without weight gradients, nothing
//                    of a backward where nothing upstream is trained; no recomputation, no copies
//                    of tensor-parallel ranks
//   megatron_flops   72·B·L·s·h² (1 + s/(6h) + V/(12·L·h)) of the language module alone, on whole
//                    sequences, all of the square of attention, everything trained; the MLP,
//                    gates, experts and key/value heads as they are:
//                    12·B·L·s·h² ((1 + K/A + s/h)·A·D/h + F/h·(3/2 if gated) + V/(2·L·h))
//                    Megatron-LM from core 0.12 on counts half of causal attention, s/(2h) for s/h:
//                    "Only half of the attention matrix is non-zero"
//   torchtitan_flops s·B·(6·(N - embedding) + 12·L·A·D·s), N of the language module
// B samples, s the longest language sequence of the batch, to which frameworks pad. Their MFU is
// these over (peak · ranks · step). Sources: Narayanan et al., arXiv 2104.04473 eq. 3 (96 with
// recomputation, 72 without); NVIDIA/Megatron-LM, megatron/training/training.py,
// num_floating_point_operations; pytorch/torchtitan, get_num_flop_per_token.
#pragma once

#include "shared/data/data.h"
#include "shared/hardware/cluster.h"
#include "shared/model/model.h"
#include "shared/units.h"

namespace polyphony {

Flops model_flops(const Model& model, const Batch& batch, NumberFormat precision);
enum class CountedAttention : std::uint8_t { full, half };
Flops megatron_flops(const Module& language, double sequences, double length,
                     CountedAttention counted = CountedAttention::full);
Flops torchtitan_flops(const Module& language, double sequences, double length);

}  // namespace polyphony
