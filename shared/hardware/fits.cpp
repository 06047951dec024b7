#include "shared/hardware/fits.h"

#include "shared/error.h"

namespace polyphony {
namespace {

// The results of scripts/fit_profiles (2026-11) for each GPU generation. A row is one published
// measurement of a training step; percentages are mean errors over the rows.
//
// Ampere and Hopper were fitted together: 142 rows of A100 (MPT, Megatron-LM 2021 and 2022,
// Megatron-DeepSpeed), 6 %, and 37 rows of H100 (MPT), 4 %. Fitted are the efficiency of GEMMs in
// whole steps, and that of MPT's attention kernels (Triton).
//
// B200: 22 rows (SimuMax), 5 %. GB200: 43 rows of Megatron-Bridge, whose recomputation and sharding
// are assumed, 10 %.
//
// Sources of what is not fitted:
//
// Hopper's kernels are measured (scenarios/measured/README.md), the same on an H100 and an H200:
// attention and its half-efficiency length, expert GEMMs, memory passes of plain kernels as
// shared/layers counts them (blocks of Llama-8B and GPT-7B: 0.60 and 0.61 of the memory rate;
// copies alone 0.885), AdamW over all tensors. Small GEMMs have no half size there: launches limit
// them.
//
// Attention, forward, over attending pairs of long sequences: A100 0.72, backward 0.86 of that
// (FlashAttention-2, arXiv 2307.08691, §4.1). B200 0.73 of full squares over both directions
// (SimuMax): 0.37 causal at 4,096 tokens, which follows from 0.53 with Hopper's curve.
//
// Expert GEMMs: medians of SimuMax's tables divided by those of single GEMMs, A100 0.65 / 0.72,
// B200 0.30 / 0.485.
//
// Memory: 0.8 of the peak and 3 us per kernel (aiconfigurator); SimuMax: A100 0.91, B200 0.67.
constexpr Fit kA100{0.802, 725, 0.346, 0.9,  0.72,
                    0.86,  0.8, 0.8,   0.15, "142 published rows of A100"};
constexpr Fit kH100{0.673, 0,    0.198, 0.95, 0.64,
                    0.72,  0.61, 0.785, 0.2,  "37 published rows of H100"};
constexpr Fit kB200{0.433, 256,  0.3,  0.62, 0.53,
                    0.72,  0.67, 0.67, 0.2,  "22 published rows of B200"};
constexpr Fit kGb200{
    0.56, 200,  0.3,  0.482, 0.53,
    0.72, 0.67, 0.67, 0.25,  "43 published rows of GB200, some of whose settings are assumed"};

}  // namespace

const Fit& fit_of(FittedOn fitted) {
  switch (fitted) {
    case FittedOn::a100:
      return kA100;
    case FittedOn::h100:
      return kH100;
    case FittedOn::b200:
      return kB200;
    case FittedOn::gb200:
      return kGb200;
    case FittedOn::nothing:
      break;
  }
  POLYPHONY_CHECK(false, "this device has no fit");
}

}  // namespace polyphony
