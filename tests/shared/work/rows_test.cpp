#include "shared/work/rows.h"

#include <doctest/doctest.h>

#include "shared/chunk/expand.h"
#include "tests/shared/support/example_models.h"

using namespace polyphony;

namespace {

// Two images of 16 patches and one of 4.
WorkSize three_images(const Module& module) {
  return {.tokens = 36,
          .pairs = 2 * 256 + 16,
          .sequences = 3,
          .window_pairs = 2 * window_pairs(module, {4, 4}) + window_pairs(module, {2, 2})};
}

double attention_flops(const Module& module, std::uint16_t layer, const WorkSize& size) {
  double flops = 0;
  const LayerRange range{layer, static_cast<std::uint16_t>(layer + 1)};
  for (const Kernel& kernel : expand(module, range, Phase::forward, size, {}).kernels)
    if (kernel.kind == KernelKind::attention) flops += kernel.flops.value;
  return flops;
}

}  // namespace

TEST_CASE("a class token adds one row per image, from the embedding to the last block") {
  Module m = examples::vision_12b();
  const WorkSize size = three_images(m);
  CHECK(rows_leaving(m, 1, size) == 36);
  m.class_token = true;
  CHECK(rows_leaving(m, 0, size) == 36);
  CHECK(rows_leaving(m, 1, size) == 39);
  CHECK(rows_leaving(m, 39, size) == 39);  // 38 blocks
  CHECK(rows_leaving(m, 40, size) == 36);  // after the norm
  // 17² · 2 + 5² pairs, with 4 FLOPs per pair and number of the width.
  CHECK(attention_flops(m, 1, size) == 4.0 * (2 * 17 * 17 + 25) * 5120);
}

TEST_CASE("window pairs are the sum of squares of the windows of an image") {
  Module m = examples::vision_12b();
  CHECK(window_pairs(m, {4, 4}) == 0);
  m.window = 3;
  // 4 × 4 patches are cut into windows of 9, 3, 3 and 1 patches.
  CHECK(window_pairs(m, {4, 4}) == 81 + 9 + 9 + 1);
  CHECK(window_pairs(m, {2, 2}) == 16);
  CHECK(window_pairs(m, {6, 6}) == 4 * 81);
  // 2 rows of 8 columns: windows of 2 × 3, 2 × 3 and 2 × 2 patches; on its side the same.
  CHECK(window_pairs(m, {2, 8}) == 36 + 36 + 16);
  CHECK(window_pairs(m, {8, 2}) == 36 + 36 + 16);
  m.full_attention_blocks = {1};
  CHECK_FALSE(sees_all(m, 0));
  CHECK(sees_all(m, 1));
  const WorkSize size = three_images(m);
  CHECK(attention_flops(m, 1, size) == 4.0 * 216 * 5120);
  CHECK(attention_flops(m, 2, size) == 4.0 * 528 * 5120);
}
