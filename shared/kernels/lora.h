// LoRA: the weights W [out, in] of a block's linear layers stay frozen, and a low-rank pair is
// trained next to each:  y = W x + (alpha / r) B (A x),  A [r, in], B [out, r].
//   "<layer>.lora_a" starts normal with standard deviation 1/√in and "<layer>.lora_b" starts at
//   zero, so training starts from the base model.
//   Column-parallel W: A is replicated, B is split like the rows of W.
//   Row-parallel W: A is split by columns, B is replicated; the result of B is added before the sum
//   over ranks.
//   A rank sees its own features only, so its gradient of the replicated matrix is a partial sum.
//   Expert matrices, embeddings, norms, heads and projectors have no pair.
// Source: Hu et al., arXiv 2106.09685.
#pragma once

#include <string_view>
#include <vector>

#include "shared/kernels/parameter.h"

namespace polyphony {

// Returns `list` with Parameter::trained set, and, if the module trains LoRA pairs, with each pair
// inserted after its weight.
std::vector<Parameter> with_low_rank(const Module& module, std::vector<Parameter> list);
// Returns whether a parameter, by its name, belongs to a low-rank pair.
bool is_low_rank(std::string_view parameter);
// Returns alpha / r, or 1 if no alpha is given.
double low_rank_scale(const Module& module);

}  // namespace polyphony
