// The scales of a published weight in FP8: a value is the weight's number times the scale of its
// block. A scale tensor has the weight's name and "_scale_inv" or "_scale" after it; both are
// factors. Its shape says what a block is:
//   [⌈rows/128⌉, ⌈columns/128⌉]  128 × 128 elements (DeepSeek-V3, arXiv 2412.19437, §3.3.2)
//   [rows, 1]                    a row (compressed-tensors' "channel")
//   [1], []                      the whole weight
// Scales of activations (input_scale), which inference uses, are left out.
// Source: transformers integrations/finegrained_fp8.py; vllm-project/compressed-tensors
// quantization/lifecycle/forward.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "shared/weights/tensor_folder.h"

namespace polyphony {

struct WeightScales {
  const std::byte* data = nullptr;
  std::string format;                              // one of is_weight_format()
  std::int64_t columns = 1;                        // of the weight
  std::int64_t block_rows = 1, block_columns = 1;  // elements

  // The scale of an element of the weight, and how many elements from it on have the same scale
  // and are in the same row.
  struct Run {
    double scale = 1;
    std::int64_t count = 0;
  };
  Run at(std::int64_t element) const;
};

// Returns the names of the tensors of `folder` that describe the FP8 weight `name`: its scales
// first. Throws InputError that names the tensor if the weight is no matrix, or its scales are
// missing or of another form.
std::vector<std::string> check_scales(const TensorFolder& folder, const std::string& name);
// Returns whether a tensor of `folder` describes an FP8 weight.
bool describes_fp8(const TensorFolder& folder, const std::string& name);
// Returns the scales of an FP8 weight that was checked.
WeightScales scales_of(const TensorFolder& folder, const std::string& name);

}  // namespace polyphony
