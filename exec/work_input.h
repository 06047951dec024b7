// The input data of one microbatch, as read from the data set. Sequences are packed without
// padding, one after another along one token axis.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "exec/torch_pch.h"
#include "shared/patch_grid.h"
#include "shared/work/token_mask.h"

namespace polyphony::exec {

struct WorkInput {
  // Encoder. P = patches of all images of the microbatch, in sample and item order.
  torch::Tensor patches;          // [P, channels·patch·patch], compute format, values in [-1, 1]
  std::vector<PatchGrid> images;  // the patches of each image, row by row
  torch::Tensor frames;           // [2 · tokens of all clips, mel_bins], compute format
  std::vector<std::int64_t> audio_lengths;  // tokens of each clip
  // Language. T = tokens of all samples.
  torch::Tensor token_ids;  // [text tokens] int64, the rows of T that are text, in order
  torch::Tensor text_rows;  // [text tokens] int64: their positions in T
  // For each model edge into the language module, the positions in T of the rows that arrive over
  // that edge, [rows] int64, in order.
  std::map<int, torch::Tensor> edge_rows;
  // [T] int64: position in the sample (RoPE), or [3, T]: time, row and column
  // (exec/data/positions.h).
  torch::Tensor positions;
  std::vector<std::int64_t> lengths;  // tokens of each sample; sums to T
  // Which tokens may attend to which: over these tokens or, with context parallelism, over those of
  // all context ranks in sample order. Empty: causal, that is, each token attends to itself and to
  // those before it in its sample.
  TokenMask mask;
  torch::Tensor loss_rows;   // [loss tokens] int64, on the host: where in T a label is predicted
  torch::Tensor labels;      // [loss tokens] int64
  double loss_scale = 1;     // 1 ÷ loss tokens of the global batch
  double balance_scale = 1;  // 1 ÷ samples of the global batch
  // Diffusion. L = latent tokens of all items of the microbatch, in sample order.
  torch::Tensor latents, noise;                 // [L, latent_channels·patch²], compute format
  std::vector<double> times;                    // of each item, in (0, 1): 0 is noise, 1 the latent
  std::vector<std::int64_t> latent_lengths;     // tokens of each item; sums to L
  std::vector<std::int64_t> condition_lengths;  // rows of the conditioning of each item
  double latent_scale = 1;                      // 1 ÷ elements of `latents` in the global batch
  // Context parallelism. Then the T tokens above are this rank's own, and `lengths` counts them for
  // every sample of the microbatch (0 for a sample that has none on this rank). G = tokens of all
  // ranks of the group, rank after rank.
  //
  // Without context parallelism these are empty or undefined. They are on the host whatever the
  // device, because attention plans are computed from them.
  std::vector<std::int64_t> context_rows;  // tokens of each rank; sums to G
  torch::Tensor context_samples;           // [G] int64: which sample of the microbatch
  torch::Tensor context_positions;         // [G] int64: position in that sample

  std::vector<std::int64_t> image_lengths() const {  // patches
    std::vector<std::int64_t> patches_of;
    for (const PatchGrid& image : images) patches_of.push_back(image.patches());
    return patches_of;
  }
};

}  // namespace polyphony::exec
