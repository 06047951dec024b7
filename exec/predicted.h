// What a language model predicts at the loss rows of a microbatch.
#pragma once

#include "exec/torch_pch.h"

namespace polyphony::exec {

struct Predicted {
  torch::Tensor ids;     // [rows] int64: arg max over the vocabulary, the lowest of equal ones
  torch::Tensor losses;  // [rows] fp64: cross-entropy of the labels
};

}  // namespace polyphony::exec
