// FP8 GEMMs (training.fp8): how the operands of the blocks' GEMMs with weights are scaled before
// they are cast to eight bits. Activations, gradients and weights keep the precision of the
// training between GEMMs.
//   tensorwise  one scale for a whole operand; gradients in E5M2, everything else in E4M3
//   rowwise     one scale for each row that a sum runs along; E4M3 throughout
// Scales are those of the operand at hand ("current scaling"): its largest magnitude is cast to
// the largest number of the format. The names are torchtitan's; Transformer Engine has tensorwise
// as its current scaling, with the same formats ("hybrid").
// Source: Micikevicius et al., arXiv 2209.05433 (formats).
#pragma once

#include <cstdint>

#include "shared/enum_names.h"

namespace polyphony {

enum class Fp8Scaling : std::uint8_t { off, tensorwise, rowwise };
constexpr auto names(Fp8Scaling) { return names_of<Fp8Scaling>("off", "tensorwise", "rowwise"); }

// Bytes of the largest block of a weight gradient that an FP8 GEMM computes before it is added:
// such GEMMs cannot add to their result. Enough rows for a GEMM that fills a GPU; own choice.
inline constexpr std::int64_t kFp8SumBytes = std::int64_t{64} << 20;

}  // namespace polyphony
