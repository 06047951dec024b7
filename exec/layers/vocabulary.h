// The embedding and the loss of a language model, with tables cut along the vocabulary (V/tp rows
// on each rank).
//   embedding  a rank looks up the ids it holds and returns zeros for others; summed over the group
//   loss       largest logit, Σ exponentials and target logit are reduced over the group, one value
//              per row each; no rank ever holds all logits
// Under sequence parallelism (Pass::rows) the embedding remains a partial sum over all rows, and
// the loss gathers the rows it needs.
// As in exec/autograd/linear.h, backward returns the input gradient and queues the weight gradient.
// Source: Shoeybi et al., arXiv 1909.08053, section 3.
#pragma once

#include "exec/autograd/linear.h"
#include "exec/predicted.h"

namespace polyphony::exec {

// ids [rows] of the whole vocabulary -> [rows, H], summed over the group (except under sequence
// parallelism, see above).
torch::Tensor embedding(const Pass& pass, const torch::Tensor& ids, LocalParameter* table);
// Returns Σ cross-entropy(h Wᵀ, labels) · scale over the vocabulary cut over the group: a scalar,
// in at least fp32. h [rows, H] (the rank's own rows under sequence parallelism), labels [rows].
torch::Tensor vocabulary_loss(const Pass& pass, const torch::Tensor& h, const torch::Tensor& labels,
                              double scale, LocalParameter* weight);
// Returns the predictions for rows h and labels as of vocabulary_loss(). Not differentiable.
Predicted vocabulary_predict(const Pass& pass, const torch::Tensor& h, const torch::Tensor& labels,
                             LocalParameter* weight);

}  // namespace polyphony::exec
