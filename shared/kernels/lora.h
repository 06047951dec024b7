// LoRA: the weights W [out, in] of a block's linear layers stay as they are, and a low-rank pair is
// trained beside each:  y = W x + (alpha / r) B (A x),  A [r, in], B [out, r].
//   "<layer>.lora_a" starts normal with deviation 1/√in, "<layer>.lora_b" zero, so that the first
//   step begins at the base model. Column-parallel W: A on every rank, B cut as W's rows are.
//   Row-parallel W: A cut by columns, B on every rank; what B gives is added before the sum over
//   ranks. A rank sees its own features only, so the gradient of the whole one is a partial sum.
//   Experts' matrices, embeddings, norms, heads and projectors have none.
// Source: Hu et al., arXiv 2106.09685.
#pragma once

#include <vector>

#include "shared/kernels/parameter.h"

namespace polyphony {

// `list` with the pairs put behind their weights, where the module trains them; `trained` is set.
std::vector<Parameter> with_low_rank(const Module& module, std::vector<Parameter> list);
// alpha / r; 1 when no alpha is given.
double low_rank_scale(const Module& module);

}  // namespace polyphony
