// Training data of a diffusion module: latents x₁, noise x₀ and times t, drawn and packed
// (exec/work_input.h). x_t = (1 − t) x₀ + t x₁, and the module predicts x₁ − x₀.
//   x₀ is standard normal, t uniform in (0, 1); synthetic x₁ is standard normal.
//   Every number is a function of (seed, step, sample, item, element), shared/random.h, so a rank
//   generates only the items it computes and all layouts see the same data. Latents do not depend
//   on the step.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/work_input.h"
#include "shared/data/data.h"
#include "shared/model/model.h"

namespace polyphony::exec {

// Identifies an item of a data set, independent of the batch and microbatch it is in.
struct ItemKey {
  std::uint32_t sample = 0;  // Sample::id
  std::uint32_t item = 0;    // position in Sample::items
};
// The key of a step's random draws.
struct Draw {
  std::uint64_t seed = 1, step = 0;
};

// Draw the data of one item. Latent and noise are [tokens, width] float32.
torch::Tensor synthetic_latent(std::uint64_t seed, ItemKey key, std::int64_t tokens,
                               std::int64_t width);
torch::Tensor flow_noise(Draw draw, ItemKey key, std::int64_t tokens, std::int64_t width);
double flow_time(Draw draw, ItemKey key);

struct LatentItem {
  ItemKey key;
  std::int64_t tokens = 0, condition_rows = 0;
  torch::Tensor latent;  // [tokens, width]; undefined where only times and lengths are needed
};
// Fills `latents` and `noise` of `input` (both only if `with_latents`: only the first and the last
// chunk read them), `times`, `latent_lengths` and `condition_lengths`, in the order of `items`.
void pack_latents(WorkInput& input, const Module& diffusion, const std::vector<LatentItem>& items,
                  Draw draw, torch::Dtype dtype, bool with_latents);

// Returns the number of elements of all latents of a global batch, or 1 if there are none.
// WorkInput::latent_scale is 1 ÷ this.
std::int64_t latent_elements(const Module& diffusion, const BatchTotals& totals);

}  // namespace polyphony::exec
