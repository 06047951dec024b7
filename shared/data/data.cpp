#include "shared/data/data.h"

#include <algorithm>
#include <cmath>

#include "shared/data/distribution_text.h"
#include "shared/data/mixture_order.h"
#include "shared/error.h"
#include "shared/random.h"

namespace polyphony {
namespace {

std::int32_t draw(const Distribution& distribution, std::uint64_t seed, std::uint64_t index) {
  double value = distribution.a;
  switch (distribution.kind) {
    case Distribution::Kind::constant:
      break;
    case Distribution::Kind::uniform:
      value = std::floor(distribution.a +
                         random_uniform(seed, index) * (distribution.b - distribution.a + 1));
      break;
    case Distribution::Kind::lognormal:
      value = std::round(std::exp(distribution.a + distribution.b * random_normal(seed, index)));
      break;
  }
  return static_cast<std::int32_t>(std::clamp(value, static_cast<double>(distribution.low),
                                              static_cast<double>(distribution.high)));
}

// Returns the number of patches of an image of `side` × `side` pixels.
std::int32_t patches_at(std::int32_t side, const ImageGrid& grid) {
  const double cell = static_cast<double>(grid.patch) * grid.merge;
  const auto most = std::llround(std::sqrt(static_cast<double>(grid.patches))) / grid.merge;
  const auto patches =
      std::clamp<std::int64_t>(std::llround(side / cell), 1, std::max(1LL, most)) * grid.merge;
  return static_cast<std::int32_t>(patches * patches);
}

bool are_full(const Distribution& sides) { return sides == Distribution{}; }

// Returns element `index` of a random permutation of [0, size). A four-round Feistel network
// permutes the next power of four; it is applied repeatedly until the result is below `size`. This
// needs no table, and constant expected time per element.
// Source: Black and Rogaway, CT-RSA 2002 (cycle walking).
std::uint64_t permuted(std::uint64_t index, std::uint64_t size, std::uint64_t key) {
  int half_bits = 1;
  while ((std::uint64_t{1} << (2 * half_bits)) < size) ++half_bits;
  const std::uint64_t mask = (std::uint64_t{1} << half_bits) - 1;
  do {
    std::uint64_t left = index >> half_bits, right = index & mask;
    for (std::uint64_t round = 0; round < 4; ++round) {
      const std::uint64_t next = left ^ (random_bits(key + round, right) & mask);
      left = right;
      right = next;
    }
    index = (left << half_bits) | right;
  } while (index >= size);
  return index;
}

}  // namespace

bool constant_sizes(const Data& data) {
  const auto* source = std::get_if<SyntheticData>(&data.source);
  if (source == nullptr) return false;
  for (const Distribution* each : {&source->images, &source->text_tokens, &source->latents,
                                   &source->clips, &source->image_sides})
    if (each->kind != Distribution::Kind::constant) return false;
  return true;
}

std::int32_t most_patches(const Distribution& sides, const ImageGrid& grid) {
  if (are_full(sides)) return grid.patches;
  return patches_at(static_cast<std::int32_t>(largest(sides)), grid);
}

Batch draw_batch(const SyntheticData& data, int global_batch, const ImageGrid& grid,
                 std::uint64_t seed, std::uint64_t step) {
  constexpr std::uint64_t kSpacing = 1 << 12;  // most images per sample (validate.cpp)
  Batch batch;
  batch.samples.reserve(static_cast<std::size_t>(global_batch));
  for (int i = 0; i < global_batch; ++i) {
    const std::uint64_t draw_number =
        step * static_cast<std::uint64_t>(global_batch) + static_cast<std::uint64_t>(i);
    Sample sample;
    sample.id = static_cast<std::uint32_t>(draw_number);
    const std::int32_t images = draw(data.images, mix64(seed) + 1, draw_number);
    const std::int32_t text = std::max(1, draw(data.text_tokens, mix64(seed) + 2, draw_number));
    const std::int32_t loss =
        std::clamp(draw(data.loss_tokens, mix64(seed) + 3, draw_number), 0, text);
    for (std::int32_t k = 0; k < images; ++k)
      sample.items.push_back(
          {Modality::image,
           are_full(data.image_sides)
               ? grid.patches
               : patches_at(draw(data.image_sides, mix64(seed) + 6,
                                 draw_number * kSpacing + static_cast<std::uint64_t>(k)),
                            grid),
           0});
    const std::int32_t clips = draw(data.clips, mix64(seed) + 5, draw_number);
    for (std::int32_t k = 0; k < clips; ++k)
      sample.items.push_back({Modality::audio, data.clip_tokens, 0});
    sample.items.push_back({Modality::text, text, loss});
    const std::int32_t latents = draw(data.latents, mix64(seed) + 4, draw_number);
    for (std::int32_t k = 0; k < latents; ++k)
      sample.items.push_back({Modality::latent, data.latent_tokens, 0});
    batch.samples.push_back(std::move(sample));
  }
  return batch;
}

Batch take_batch(const Data& data, std::uint64_t step) {
  const std::vector<SampleList::Part> parts = data.samples.parts();
  std::vector<std::uint64_t> weights;
  for (const SampleList::Part& part : parts) {
    POLYPHONY_CHECK(part.size > 0, "the data set is empty");
    weights.push_back(part.weight);
  }
  const MixtureOrder order(weights);
  Batch batch;
  for (int i = 0; i < data.global_batch; ++i) {
    const MixtureOrder::Place place = order.at(
        step * static_cast<std::uint64_t>(data.global_batch) + static_cast<std::uint64_t>(i));
    const SampleList::Part& part = parts[place.part];
    const std::uint64_t epoch = place.number / part.size, at = place.number % part.size;
    // Parts of the same size have different permutations.
    const std::uint64_t key = mix64((data.seed + place.part) ^ mix64(epoch));
    batch.samples.push_back(
        data.samples[part.first + (data.shuffle ? permuted(at, part.size, key) : at)]);
  }
  return batch;
}

}  // namespace polyphony
