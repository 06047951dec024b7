#include "exec/data/latents.h"

#include <algorithm>

#include "shared/error.h"
#include "shared/random.h"

namespace polyphony::exec {
namespace {

// Streams of random numbers, one per item and purpose, distinct from those of other content
// (exec/data/synthetic_dataset.cpp).
enum class Purpose : std::uint64_t { latent = 0x6c61, noise = 0x6e6f, time = 0x7469 };

std::uint64_t stream(Draw draw, ItemKey key, Purpose purpose) {
  const std::uint64_t sample = mix64(mix64(mix64(draw.seed) ^ draw.step) ^ key.sample);
  return mix64(mix64(sample ^ (std::uint64_t{key.item} << 32)) +
               static_cast<std::uint64_t>(purpose));
}

torch::Tensor normal(std::uint64_t seed, std::int64_t rows, std::int64_t width) {
  torch::Tensor values = torch::empty({rows, width}, torch::kFloat32);
  float* out = values.data_ptr<float>();
  for (std::int64_t i = 0; i < rows * width; ++i)
    out[i] = static_cast<float>(random_normal(seed, static_cast<std::uint64_t>(i)));
  return values;
}

}  // namespace

torch::Tensor synthetic_latent(std::uint64_t seed, ItemKey key, std::int64_t tokens,
                               std::int64_t width) {
  return normal(stream({seed, 0}, key, Purpose::latent), tokens, width);
}

torch::Tensor flow_noise(Draw draw, ItemKey key, std::int64_t tokens, std::int64_t width) {
  return normal(stream(draw, key, Purpose::noise), tokens, width);
}

double flow_time(Draw draw, ItemKey key) {
  return random_uniform(stream(draw, key, Purpose::time), 0);
}

void pack_latents(WorkInput& input, const Module& diffusion, const std::vector<LatentItem>& items,
                  Draw draw, torch::Dtype dtype, bool with_latents) {
  const std::int64_t width = latent_width(diffusion);
  std::int64_t tokens = 0;
  for (const LatentItem& item : items) {
    input.times.push_back(flow_time(draw, item.key));
    input.latent_lengths.push_back(item.tokens);
    input.condition_lengths.push_back(item.condition_rows);
    tokens += item.tokens;
  }
  if (!with_latents) return;
  input.latents = torch::empty({tokens, width}, dtype);
  input.noise = torch::empty({tokens, width}, dtype);
  std::int64_t first = 0;
  for (const LatentItem& item : items) {
    POLYPHONY_CHECK(item.latent.sizes() == torch::IntArrayRef({item.tokens, width}),
                    "sample " << item.key.sample << ": a latent of " << item.latent.sizes()
                              << " for " << item.tokens << " tokens of " << width);
    input.latents.narrow(0, first, item.tokens).copy_(item.latent);
    input.noise.narrow(0, first, item.tokens).copy_(flow_noise(draw, item.key, item.tokens, width));
    first += item.tokens;
  }
}

std::int64_t latent_elements(const Module& diffusion, const BatchTotals& totals) {
  return std::max<std::int64_t>(1, totals.latent_tokens * latent_width(diffusion));
}

}  // namespace polyphony::exec
