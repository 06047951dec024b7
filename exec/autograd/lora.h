// The low-rank pair that LoRA adds to a linear layer (shared/kernels/lora.h), for
// exec/autograd/linear.cpp:
//   h = s A x, y += B h;  g = s Bᵀ dy, dx += Aᵀ g;  queued: dA += g xᵀ, dB += dy hᵀ
// Rows are as in exec/autograd/linear.h (x [rows, in]); the caller sums over ranks.
#pragma once

#include "exec/autograd/linear.h"

namespace polyphony::exec {

// Adds B h to y, and returns h, which the backward pass needs.
torch::Tensor add_low_rank(const LocalParameter& weight, const torch::Tensor& x, torch::Tensor& y);
// The two parts of the backward pass: the first returns g, the second queues the sums for dA and
// dB.
torch::Tensor low_rank_gradient(const LocalParameter& weight, const torch::Tensor& dy);
void queue_low_rank(const Pass& pass, const LocalParameter& weight, torch::Tensor x,
                    torch::Tensor h, const torch::Tensor& dy, torch::Tensor g);
// Runs both parts. Adds Aᵀ g to dx unless dx is undefined.
void low_rank_backward(const Pass& pass, const LocalParameter& weight, torch::Tensor x,
                       torch::Tensor h, const torch::Tensor& dy, torch::Tensor& dx);

}  // namespace polyphony::exec
