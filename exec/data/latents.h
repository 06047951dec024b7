// What a diffusion module learns from: latents x₁, noise x₀ and times t, drawn and packed
// (exec/work_input.h). x_t = (1 − t) x₀ + t x₁, and the module predicts x₁ − x₀.
//   x₀ standard normal, t uniform in (0, 1); synthetic x₁ standard normal.
//   Every number is a function of (seed, step, sample, item, element), shared/random.h: a rank
//   makes the items it works on, all layouts see the same. Latents do not depend on the step.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/work_input.h"
#include "shared/data/data.h"
#include "shared/model/model.h"

namespace polyphony::exec {

// An item of a data set, whichever batch or work it is in.
struct ItemKey {
  std::uint32_t sample = 0;  // Sample::id
  std::uint32_t item = 0;    // position in Sample::items
};
struct Draw {
  std::uint64_t seed = 1, step = 0;
};

// Both [tokens, width] float32.
torch::Tensor synthetic_latent(std::uint64_t seed, ItemKey key, std::int64_t tokens,
                               std::int64_t width);
torch::Tensor flow_noise(Draw draw, ItemKey key, std::int64_t tokens, std::int64_t width);
double flow_time(Draw draw, ItemKey key);

struct LatentItem {
  ItemKey key;
  std::int64_t tokens = 0, condition_rows = 0;
  torch::Tensor latent;  // [tokens, width]; undefined where only times and lengths are needed
};
// Fills `latents`, `noise` (both only when `with_latents`: the first and the last chunk read them),
// `times`, `latent_lengths` and `condition_lengths` of `input`, in the order of `items`.
void pack_latents(WorkInput& input, const Module& diffusion, const std::vector<LatentItem>& items,
                  Draw draw, torch::Dtype dtype, bool with_latents);

// Elements of all latents of a global batch: latent_scale is 1 ÷ this; 1 when there are none.
std::int64_t latent_elements(const Module& diffusion, const BatchTotals& totals);

}  // namespace polyphony::exec
