// The heads that attention reads, made from rows (exec/attention/attention.h), or their gradients.
#pragma once

#include "exec/torch_pch.h"

namespace polyphony::exec {

// Queries [N, g, T, W], keys [N, 1, G, W], values [N, 1, G, Dv]: see
// exec/attention_calls/heads_attention.h.
struct HeadTensors {
  torch::Tensor queries, keys, values;
};

}  // namespace polyphony::exec
