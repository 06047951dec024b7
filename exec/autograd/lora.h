// The low-rank pair beside a linear layer (shared/kernels/lora.h), for exec/autograd/linear.cpp:
//   h = s A x, y += B h;  g = s Bᵀ dy, dx += Aᵀ g;  queued: dA += g xᵀ, dB += dy hᵀ
// Rows as in exec/autograd/linear.h (x [rows, in]); sums over ranks are the caller's.
#pragma once

#include "exec/autograd/linear.h"

namespace polyphony::exec {

// Adds to y, and returns h for the backward.
torch::Tensor add_low_rank(const LocalParameter& weight, const torch::Tensor& x, torch::Tensor& y);
// Its parts: g; what the weight part adds to dA and dB.
torch::Tensor low_rank_gradient(const LocalParameter& weight, const torch::Tensor& dy);
void queue_low_rank(const Pass& pass, const LocalParameter& weight, torch::Tensor x,
                    torch::Tensor h, const torch::Tensor& dy, torch::Tensor g);
// Both. Adds to dx unless that is undefined.
void low_rank_backward(const Pass& pass, const LocalParameter& weight, torch::Tensor x,
                       torch::Tensor h, const torch::Tensor& dy, torch::Tensor& dx);

}  // namespace polyphony::exec
