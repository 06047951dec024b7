// What a work item brings from the data set, packed without padding: sequences one after another
// along one token axis.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/torch_pch.h"

namespace polyphony::exec {

struct WorkInput {
  // Encoder. P = patches of all images of the work, in sample and item order.
  torch::Tensor patches;  // [P, channels·patch·patch], compute format, values in [-1, 1]
  std::vector<std::int64_t> image_lengths;  // patches of each image (a square grid)
  // Language. T = tokens of all samples.
  torch::Tensor token_ids;  // [text tokens] int64, the rows of T that are text, in order
  torch::Tensor text_rows;  // [text tokens] int64: their positions in T
  torch::Tensor
      image_rows;  // [image tokens] int64: positions in T of the boundary input's rows, in order
  torch::Tensor positions;            // [T] int64: position in the sample (RoPE)
  std::vector<std::int64_t> lengths;  // tokens of each sample; sums to T
  torch::Tensor loss_rows;            // [loss tokens] int64: positions in T that predict a label
  torch::Tensor labels;               // [loss tokens] int64
  double loss_scale = 1;              // 1 ÷ loss tokens of the global batch
};

}  // namespace polyphony::exec
