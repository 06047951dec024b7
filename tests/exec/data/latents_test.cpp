#include "exec/data/latents.h"

#include "tests/exec/support/tiny_diffusion.h"

#include <doctest/doctest.h>  // after LibTorch, which has a CHECK of its own

using namespace polyphony;
using namespace polyphony::exec;
using namespace polyphony::exec::testing;
using torch::Tensor;

TEST_SUITE("diffusion") {
  TEST_CASE("noise and times depend on the item and the step") {
    const Draw draw{5, 2};
    const Tensor noise = flow_noise(draw, {7, 1}, 50, 12);
    CHECK(torch::equal(noise, flow_noise(draw, {7, 1}, 50, 12)));
    CHECK(torch::equal(noise.narrow(0, 0, 10), flow_noise(draw, {7, 1}, 10, 12)));
    for (const auto& [other, key] : std::vector<std::pair<Draw, ItemKey>>{
             {{5, 3}, {7, 1}}, {{6, 2}, {7, 1}}, {draw, {8, 1}}, {draw, {7, 0}}}) {
      CHECK_FALSE(torch::equal(noise, flow_noise(other, key, 50, 12)));
      CHECK(flow_time(draw, {7, 1}) != flow_time(other, key));
    }
    CHECK(torch::equal(synthetic_latent(5, {7, 1}, 50, 12), synthetic_latent(5, {7, 1}, 50, 12)));
    // 600 normals: mean 0 ± 4/√600, deviation 1 ± 4/√1200. 2000 uniforms: mean 1/2 ± 4/√24000.
    CHECK(std::abs(noise.mean().item<double>()) < 0.17);
    CHECK(std::abs(noise.std().item<double>() - 1) < 0.12);
    double sum = 0;
    for (std::uint32_t sample = 0; sample < 2000; ++sample) {
      const double time = flow_time(draw, {sample, 1});
      CHECK((time > 0 && time < 1));
      sum += time;
    }
    CHECK(std::abs(sum / 2000 - 0.5) < 0.026);
  }

  TEST_CASE("packing, and the denominator of the batch") {
    const Module module = tiny_diffusion();
    WorkInput input;
    const std::vector<LatentItem> items = {{{4, 1}, 3, 2, synthetic_latent(1, {4, 1}, 3, 12)},
                                           {{9, 2}, 2, 5, synthetic_latent(1, {9, 2}, 2, 12)}};
    pack_latents(input, module, items, {8, 6}, torch::kFloat64, true);
    CHECK(input.latent_lengths == std::vector<std::int64_t>{3, 2});
    CHECK(input.condition_lengths == std::vector<std::int64_t>{2, 5});
    CHECK(input.times == std::vector<double>{flow_time({8, 6}, {4, 1}), flow_time({8, 6}, {9, 2})});
    CHECK(torch::equal(input.latents.narrow(0, 3, 2), items[1].latent.to(torch::kFloat64)));
    CHECK(torch::equal(input.noise.narrow(0, 3, 2),
                       flow_noise({8, 6}, {9, 2}, 2, 12).to(torch::kFloat64)));
    WorkInput times;
    pack_latents(times, module, items, {8, 6}, torch::kFloat64, false);
    CHECK(times.times == input.times);
    CHECK_FALSE(times.latents.defined());
    // 3 + 2 tokens of 3·2² features.
    const Batch batch{{{4, {{Modality::text, 2, 1}, {Modality::latent, 3, 0}}},
                       {5, {{Modality::text, 7, 1}}},
                       {9, {{Modality::image, 16, 0}, {Modality::latent, 2, 0}}}}};
    CHECK(latent_elements(module, totals_of(batch)) == 5 * 12);
    CHECK(latent_elements(module, {}) == 1);
  }
}
