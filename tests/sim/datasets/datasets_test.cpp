// Samples of data sets on disk as counts: tokens of texts, patches of images, and packing.
#include <doctest/doctest.h>

#include "shared/error.h"
#include "sim/datasets/count.h"
#include "sim/datasets/pack.h"
#include "tests/shared/support/example_models.h"

namespace polyphony::sim {

TEST_SUITE("data sets") {
  TEST_CASE("texts: in tokens of a tokenizer, or four bytes per token without one") {
    CHECK(text_tokens("eleven char", {}) == 3);
    CHECK(text_tokens("", {}) == 0);
    // "a" and "b" are merged, "ab" and "c" are not; é is two bytes, each with a letter of its own.
    const Counting by{.tokenizer = Tokenizer::parse(
                          R"({"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
                              "model": {"type": "BPE", "merges": ["a b"],
                                "vocab": {"a": 0, "b": 1, "c": 2, "ab": 3, "Ã": 4, "©": 5}}})",
                          "t.json")};
    CHECK(text_tokens("abc", by) == 2);
    CHECK(text_tokens("é", by) == 2);
    CHECK(text_tokens("", by) == 0);
    CHECK_THROWS_AS(text_tokens("\xC3", by), InputError);
  }

  TEST_CASE("packing: no sample lost, no sequence too long, first sequence with room") {
    Model model = examples::small_on_cpu(1, 1).model;
    std::vector<Sample> samples;
    for (const int tokens : {6, 5, 4, 30, 3, 1})
      samples.push_back(
          {static_cast<std::uint32_t>(samples.size()), {{Modality::text, tokens, 1}}});
    const std::vector<Sample> packed = pack(model, samples, 10);
    std::vector<std::vector<int>> lengths;
    for (const Sample& sample : packed) {
      CHECK(sample.id == lengths.size());
      lengths.emplace_back();
      for (const Item& item : sample.items) lengths.back().push_back(item.tokens);
    }
    CHECK(lengths == std::vector<std::vector<int>>{{6, 4}, {5, 3, 1}, {30}});
    for (int i = 0; i < 100; ++i)
      samples.push_back({0, {{Modality::text, 6, 1}}});  // more samples than open sequences
    std::size_t items = 0;
    for (const Sample& sample : pack(model, samples, 10)) items += sample.items.size();
    CHECK(items == samples.size());
  }

  TEST_CASE("token counts: the fixed image size, or the nearest square of whole cells") {
    Model model = examples::small_on_cpu(1, 1).model;
    Module& vision = model.modules[0];
    vision.patch = 16;
    vision.image_size = 512;
    model.modules[1].merge = 2;
    Found found;
    for (const PictureSize size : {PictureSize{640, 160}, {8, 8}, {4000, 3000}})
      found.pictures.push_back({size, {}});
    found.conversation.turns = {{Speaker::user, "four"}, {Speaker::assistant, "eight by"}};
    const auto patches = [&](bool native) {
      std::vector<int> all;
      const Sample sample = count(model, found, {.native = native}).value();
      for (const Item& item : sample.items)
        if (item.modality == Modality::image) all.push_back(item.tokens);
      return all;
    };
    CHECK(patches(false) == std::vector<int>{1024, 1024, 1024});
    CHECK(patches(true) ==
          std::vector<int>{400, 4, 1024});  // √(640 · 160) = 320 pixels: 10 cells of 32
    const Sample sample = count(model, found, {}).value();
    CHECK(sample.items.back().tokens == 3);
    CHECK(sample.items.back().loss_tokens == 2);
  }

  // Cells of 32 pixels: 160 / 32 = 5, 640 / 32 = 20; one of 8 × 8 pixels is enlarged to 1,024.
  TEST_CASE("token counts: the grids of an image processor that keeps images' sizes") {
    Model model = examples::small_on_cpu(1, 1).model;
    model.modules[0].patch = 16;
    model.modules[1].merge = 2;
    Found found;
    for (const PictureSize size : {PictureSize{640, 160}, {8, 8}})
      found.pictures.push_back({size, {}});
    const Counting by{.native = true, .sizes = NativeImages{16, 2, 1024, 1 << 20}};
    const Sample sample = count(model, found, by).value();
    CHECK(sample.items.at(0) == image_item({10, 40}));
    CHECK(sample.items.at(1) == image_item({2, 2}));
    found.pictures.push_back({PictureSize{201, 1}, {}});
    CHECK_FALSE(count(model, found, by));
  }

  TEST_CASE("token counts: audio by its length, rounded up to the merge, at most the module's") {
    Module audio{.name = "audio", .kind = ModuleKind::audio};
    audio.audio_tokens = 20;
    Module projector{.name = "projector", .kind = ModuleKind::projector};
    projector.source = ModuleKind::audio;
    projector.merge = 4;
    const Model model{{audio, projector}, {{ModuleId(0), ModuleId(1)}}};
    Found found;
    for (const double length : {0.001, 0.08, 0.0801, 0.1, 0.4, 0.5, 1e300})
      found.sounds.push_back({Seconds(length), {}});
    const auto tokens = [&](double a_second) {
      std::vector<int> all;
      const Sample sample = count(model, found, {.clip_tokens_a_second = a_second}).value();
      for (const Item& item : sample.items)
        if (item.modality == Modality::audio) all.push_back(item.tokens);
      return all;
    };
    // 80 ms are 4 tokens of 20 ms.
    CHECK(tokens(50) == std::vector<int>{4, 4, 8, 8, 20, 20, 20});
    CHECK(tokens(25) == std::vector<int>{4, 4, 4, 4, 12, 16, 20});
  }
}

}  // namespace polyphony::sim
