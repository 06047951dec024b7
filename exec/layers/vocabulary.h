// The two ends of a language model, their tables cut along the vocabulary (V/tp rows on each rank).
//   embedding  a rank looks up the ids it holds, zero elsewhere; summed over the group
//   loss       largest logit, Σ exponentials and target logit are reduced over the group, one value
//              per row each: no rank ever holds all logits
// Sequence parallelism (Pass::rows): the embedding is left a partial sum over all rows; the loss
// gathers the rows it takes.
// As in exec/autograd/linear.h, backward returns the input gradient and queues the weight part.
// Source: Shoeybi et al., arXiv 1909.08053, section 3.
#pragma once

#include "exec/autograd/linear.h"

namespace polyphony::exec {

// ids [rows] of the whole vocabulary -> [rows, H], summed over the group (but see above).
torch::Tensor embedding(const Pass& pass, const torch::Tensor& ids, LocalParameter* table);
// Σ cross-entropy(h Wᵀ, labels) · scale over the vocabulary cut over the group: a scalar, fp32 at
// least. h [rows, H] (own rows under sequence parallelism), labels [rows].
torch::Tensor vocabulary_loss(const Pass& pass, const torch::Tensor& h, const torch::Tensor& labels,
                              double scale, LocalParameter* weight);
// The same rows' arg max over the vocabulary, lowest index first among equals: [rows] int64. No
// gradient.
torch::Tensor vocabulary_argmax(const Pass& pass, const torch::Tensor& h, LocalParameter* weight);

}  // namespace polyphony::exec
