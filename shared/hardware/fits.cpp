#include "shared/hardware/fits.h"

#include "shared/error.h"

namespace polyphony {
namespace {

// What scripts/fit_profiles found (2026-11), by generation, and the mean error of its rows.
//
// Ampere and Hopper together: 142 rows of A100 (MPT, Megatron-LM 2021 and 2022,
// Megatron-DeepSpeed), 6 %, and 37 of H100 (MPT), 4 %: what matrix products reach in whole steps,
// and the kernels of attention of MPT (Triton).
//
// B200: 22 rows (SimuMax), 5 %. GB200: 43 rows of Megatron-Bridge, whose recomputation and sharding
// are assumed, 10 %.
//
// What is not fitted, and where it comes from.
//
// Hopper's kernels are measured (scenarios/measured/README.md), an H100's and an H200's alike:
// attention, its half of keys, products of experts, passes of plain kernels as shared/layers counts
// them (blocks of Llama-8B and GPT-7B: 0.60 and 0.61 of the memory rate; copies alone 0.885), AdamW
// over all tensors. Small products have no half size there: what holds them up is a launch.
//
// Attention, forward, over attending pairs of long rows: A100 0.72, backward 0.86 of it
// (FlashAttention-2, arXiv 2307.08691, §4.1). B200 0.73 of full squares over both directions
// (SimuMax): 0.37 causal at 4,096, which 0.53 and Hopper's curve come to.
//
// Products of experts: medians of SimuMax's tables over those of single ones, A100 0.65 / 0.72,
// B200 0.30 / 0.485.
//
// Memory: 0.8 of the peak and 3 us per kernel (aiconfigurator); SimuMax: A100 0.91, B200 0.67.
constexpr Fit kA100{0.802, 725, 0.346, 0.9,  0.72,
                    0.86,  0.8, 0.8,   0.15, "142 published rows of A100"};
constexpr Fit kH100{0.673, 0,    0.198, 0.95, 0.64,
                    0.72,  0.61, 0.785, 0.2,  "37 published rows of H100"};
constexpr Fit kB200{0.433, 256,  0.3,  0.62, 0.53,
                    0.72,  0.67, 0.67, 0.2,  "22 published rows of B200"};
constexpr Fit kGb200{0.56, 200,  0.3,  0.482, 0.53,
                     0.72, 0.67, 0.67, 0.25,  "43 published rows of GB200, parts of them assumed"};

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
  POLYPHONY_CHECK(false, "a GPU that is fitted to nothing");
}

}  // namespace polyphony
