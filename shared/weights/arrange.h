// The arrangements that the tables of shared/weights/tensor_families.cpp name: each returns the
// parts of a parameter for the tensors of its row. Symbols as in shared/kernels/parameter.h: A
// query heads, K key/value heads, D head width, H hidden width, F feed-forward width, E experts.
#pragma once

#include "shared/weights/arrangement.h"

namespace polyphony::arrange {

using Names = std::vector<std::string>;
using Parts = std::vector<TensorPart>;

// The tensor itself; with "{e}" in its name, one tensor per expert.
Parts same(const Module& module, const Parameter& parameter, const Names& names);
// q, k and v as three tensors; the parameter has [q heads of a group | k | v] for each key/value
// head. An empty name: zeros.
Parts by_group(const Module& module, const Parameter& parameter, const Names& names);
// The same three in one tensor [all q | all k | all v].
Parts joined_by_kind(const Module& module, const Parameter& parameter, const Names& names);
// Two tensors whose rows alternate in the parameter: gate and up. With "{e}": per expert.
Parts alternating(const Module& module, const Parameter& parameter, const Names& names);
// [E, in, out] instead of [E, out, in].
Parts transposed_experts(const Module& module, const Parameter& parameter, const Names& names);
// Rotary rows as pairs (2j, 2j + 1) instead of halves (j, R/2 + j): after Rkv latent rows, or after
// the first D rows of each head.
Parts latent_keys(const Module& module, const Parameter& parameter, const Names& names);
Parts latent_queries(const Module& module, const Parameter& parameter, const Names& names);
// Linear attention: per key head [q | k | v | output gates] and [β | decays] in two tensors.
Parts linear_input(const Module& module, const Parameter& parameter, const Names& names);
// Its convolution: [all q | all k | all v, 1, taps] instead of [q | k | v] per key head.
Parts linear_convolution(const Module& module, const Parameter& parameter, const Names& names);
// [3 × channels] as three planes instead of three rows per channel.
Parts three_per_channel(const Module& module, const Parameter& parameter, const Names& names);
// [channels, 1, taps] instead of [channels, taps].
Parts one_channel_each(const Module& module, const Parameter& parameter, const Names& names);
// [H, channels, patch, patch] instead of [H, channels · patch²].
Parts patches(const Module& module, const Parameter& parameter, const Names& names);
// [H, channels, 2, patch, patch]: the sum over both frames.
Parts two_frames(const Module& module, const Parameter& parameter, const Names& names);
// [out, in, 3] instead of [out, 3 · in].
Parts three_frames(const Module& module, const Parameter& parameter, const Names& names);
// [H] instead of [1, H].
Parts one_row(const Module& module, const Parameter& parameter, const Names& names);
// [1, rows, H] instead of [rows, H].
Parts one_table(const Module& module, const Parameter& parameter, const Names& names);

}  // namespace polyphony::arrange
