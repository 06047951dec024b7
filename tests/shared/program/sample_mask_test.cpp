// The masks of a scenario, token by token for one sample, and the number of pairs that attend.
#include <doctest/doctest.h>

#include "shared/program/sample_mask.h"
#include "tests/shared/support/example_models.h"

namespace polyphony {
namespace {

// Images of 8 and 4 patches are 2 and 1 rows of the sequence (merged 2 × 2), a clip of 4 tokens is
// 4.
Model model_with(Mask mask) {
  Module language = examples::llama_70b();
  language.mask = mask;
  return examples::chain(examples::vision_12b(), examples::projector_12b_70b(), language);
}
// Rows: text 0-1, image 2-3, image 4, text 5-7, clip 8-11, image 12, text 13-15.
const Sample kSample{0,
                     {{Modality::text, 2, 0},
                      {Modality::image, 8, 0},
                      {Modality::image, 4, 0},
                      {Modality::text, 3, 2},
                      {Modality::audio, 4, 0},
                      {Modality::image, 4, 0},
                      {Modality::text, 3, 1}}};

// Returns, for each row, the keys that it attends to, as text: "0-3 5".
std::vector<std::string> rows_of(Mask mask) {
  TokenMask all;
  add_sample(all, model_with(mask), kSample);
  const std::vector<Rectangle> seen = rectangles(all);
  std::vector<std::string> rows;
  for (std::int64_t q = 0; q < all.tokens(); ++q) {
    std::string row;
    std::int64_t from = -1;
    for (std::int64_t k = 0; k <= all.tokens(); ++k) {
      const bool sees = std::any_of(seen.begin(), seen.end(), [&](const Rectangle& r) {
        return pairs(cut(r, {q, q + 1}, {k, k + 1})) > 0;
      });
      if (sees && from < 0) from = k;
      if (sees || from < 0) continue;
      row += (row.empty() ? "" : " ") + std::to_string(from) +
             (k - 1 > from ? "-" + std::to_string(k - 1) : "");
      from = -1;
    }
    rows.push_back(row);
  }
  return rows;
}

}  // namespace

TEST_CASE("masks of a sample, row by row") {
  const std::vector<std::string> causal = rows_of(Mask::causal);
  CHECK(causal[0] == "0");
  CHECK(causal[15] == "0-15");

  const std::vector<std::string> isolated = rows_of(Mask::isolated);
  CHECK(isolated[1] == "0-1");
  CHECK(isolated[2] == "2-3");  // next to the second image, but not attending to it
  CHECK(isolated[4] == "4");
  CHECK(isolated[6] == "0-6");
  CHECK(isolated[8] == "8-11");
  CHECK(isolated[12] == "12");
  CHECK(isolated[15] == "0-15");

  const std::vector<std::string> modality = rows_of(Mask::modality);
  CHECK(modality[2] == "2-4 12");
  CHECK(modality[12] == "2-4 12");
  CHECK(modality[9] == "8-11");
  CHECK(modality[7] == "0-7");

  const std::vector<std::string> embedded = rows_of(Mask::embedded);
  CHECK(embedded[2] == "0-3");
  CHECK(embedded[4] == "0-4");
  CHECK(embedded[8] == "0-11");
  CHECK(embedded[7] == "0-7");

  // The first label is that of row 6.
  const std::vector<std::string> prefix = rows_of(Mask::prefix);
  CHECK(prefix[0] == "0-5");
  CHECK(prefix[5] == "0-5");
  CHECK(prefix[6] == "0-6");
  CHECK(prefix[15] == "0-15");

  // Text ends at 2, 8 and 16.
  const std::vector<std::string> documents = rows_of(Mask::documents);
  CHECK(documents[1] == "0-1");
  CHECK(documents[2] == "2");
  CHECK(documents[7] == "2-7");
  CHECK(documents[8] == "8");
  CHECK(documents[15] == "8-15");
}

TEST_CASE("pairs of a microbatch are those of the mask; samples do not attend to each other") {
  const Batch batch{{kSample, kSample}};
  const std::vector<std::uint32_t> both = {0, 1};
  const auto pairs_with = [&](Mask mask) {
    return work_size(model_with(mask), ModuleId(2), batch, both.data(), both.size()).pairs;
  };
  CHECK(pairs_with(Mask::causal) == 2 * 136);  // 16 · 17/2
  // Text rows 0-1, 5-7 and 13-15 see 3, 21 and 45; items 4 + 1 + 16 + 1.
  CHECK(pairs_with(Mask::isolated) == 2 * (3 + 21 + 45 + 22));
  CHECK(pairs_with(Mask::modality) == 2 * (3 + 21 + 45 + 16 + 16));
  // Above the diagonal 1 and 6 of the image and the clip.
  CHECK(pairs_with(Mask::embedded) == 2 * (136 + 1 + 6));
  CHECK(pairs_with(Mask::prefix) == 2 * (136 + 15));  // 6 · 5/2 above it
  CHECK(pairs_with(Mask::documents) == 2 * (3 + 21 + 36));

  TokenMask side_by_side;
  for (int i = 0; i < 2; ++i) add_sample(side_by_side, model_with(Mask::modality), kSample);
  CHECK(pairs(rectangles(side_by_side), {0, 32}) == pairs_with(Mask::modality));
}

}  // namespace polyphony
