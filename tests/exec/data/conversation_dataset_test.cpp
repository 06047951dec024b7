// Conversations with real images and audio: content of the right file in the right place, held-out
// samples, and images and clips that are damaged after their header.
#include "exec/data/conversation_dataset.h"

#include <doctest/doctest.h>
#include <png.h>

#include "tests/exec/support/sound_files.h"
#include "tests/exec/support/temp_folder.h"

namespace polyphony::exec {
namespace {

// libpng leaves a damaged image by longjmp(), which ThreadSanitizer does not understand.
#if defined(__SANITIZE_THREAD__)
constexpr bool kThreadSanitizer = true;
#else
constexpr bool kThreadSanitizer = false;
#endif

using testing::slurp;
using testing::spill;
using testing::TempFolder;

// Ids of "a" to "e" and of the end of text.
const char* const kTokenizer =
    R"({"added_tokens": [{"id": 5, "content": "</s>", "special": true, "normalized": false,
         "lstrip": false, "rstrip": false, "single_word": false}],
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
        "model": {"type": "BPE", "merges": [],
                  "vocab": {"a": 0, "b": 1, "c": 2, "d": 3, "e": 4}}})";

void write_png(const std::string& path, unsigned char red, unsigned height = 8,
               unsigned width = 8) {
  std::vector<unsigned char> pixels(std::size_t{3} * height * width, 0);
  for (std::size_t i = 0; i < pixels.size(); i += 3) pixels[i] = red;
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = width;
  image.height = height;
  image.format = PNG_FORMAT_RGB;
  REQUIRE(png_image_write_to_file(&image, path.c_str(), 0, pixels.data(), 0, nullptr));
}

std::string line(const std::string& image, const std::string& question, const std::string& answer) {
  return R"({"image": ")" + image + R"(", "conversations": [{"from": "human", "value": ")" +
         question + R"("}, {"from": "gpt", "value": ")" + answer + "\"}]}\n";
}

Scenario scenario_at(const TempFolder& folder) {
  spill(folder / "tokenizer.json", kTokenizer);
  spill(folder / "tokenizer_config.json", R"({"eos_token": "</s>"})");
  write_png(folder / "red.png", 255);
  write_png(folder / "dark.png", 0);
  spill(folder / "train.jsonl", line("red.png", "ab", "c") + line("dark.png", "a", "de"));
  spill(folder / "test.jsonl", line("red.png", "b", "e"));
  Module vision{.name = "vision", .kind = ModuleKind::vision};
  vision.image_size = 8;
  vision.patch = 4;
  vision.channels = 3;
  Module language{.name = "language", .kind = ModuleKind::language};
  language.vocab = 10;
  Scenario scenario;
  scenario.file = "small.json";
  scenario.model = {{vision, language}, {{ModuleId(0), ModuleId(1)}}};
  ConversationData source{folder / "train.jsonl", folder / "tokenizer.json"};
  source.held_out = folder / "test.jsonl";
  source.chat = ChatTemplate::plain;
  scenario.data.source = source;
  scenario.data.global_batch = 2;
  return scenario;
}

// A model that hears: 8 bands, at most 10 tokens, two of which make a row.
Scenario scenario_with_audio(const TempFolder& folder) {
  Scenario scenario = scenario_at(folder);
  Module audio{.name = "audio", .kind = ModuleKind::audio};
  audio.mel_bins = 8;
  audio.audio_tokens = 10;
  Module projector{.name = "projector", .kind = ModuleKind::projector};
  projector.source = ModuleKind::audio;
  projector.merge = 2;
  scenario.model = {{audio, projector, scenario.model.modules[1]},
                    {{ModuleId(0), ModuleId(1)}, {ModuleId(1), ModuleId(2)}}};
  // 50 ms are 2.5 tokens, rounded up to 4; a second is cut to 10.
  spill(folder / "tone.flac",
        testing::sound_file(testing::kFlac16, 16000, testing::cosine(1000, 16000, 800)));
  spill(folder / "long.wav",
        testing::sound_file(testing::kWav16, 44100, testing::cosine(400, 44100, 44100)));
  const auto said = [](const std::string& clips, const std::string& question) {
    return R"({"audio": )" + clips + R"(, "conversations": [{"from": "human", "value": ")" +
           question + R"("}, {"from": "gpt", "value": "c"}]})" + "\n";
  };
  spill(folder / "train.jsonl",
        said(R"(["long.wav", "tone.flac"])", "a<audio>b<audio>") + said(R"("tone.flac")", "b"));
  spill(folder / "test.jsonl", said(R"("tone.flac")", "a"));
  return scenario;
}

}  // namespace

TEST_SUITE("conversation data set") {
  TEST_CASE("pixels, ids and labels of training and held-out samples") {
    const TempFolder folder;
    const auto dataset = open_dataset(scenario_at(folder), "");
    REQUIRE(dataset->training().size() == 2);
    const SampleContent first = dataset->content(dataset->training()[0], {});
    REQUIRE(first.images.size() == 1);
    CHECK(first.images[0].sizes() == torch::IntArrayRef({3, 8, 8}));
    CHECK(first.images[0][0].eq(1).all().item<bool>());   // red: 255 is 1
    CHECK(first.images[0][1].eq(-1).all().item<bool>());  // green: 0 is −1
    CHECK(first.token_ids == std::vector<std::int64_t>{0, 1, 2});
    CHECK(first.labels == std::vector<std::int64_t>{2, 5});
    const SampleContent second = dataset->content(dataset->training()[1], {.text = false});
    CHECK(second.images[0].eq(-1).all().item<bool>());
    CHECK(second.token_ids.empty());
    REQUIRE(dataset->held_out().size() == 1);
    CHECK(dataset->held_out()[0].id == 2);
    const SampleContent held_out = dataset->content(dataset->held_out()[0], {});
    CHECK(held_out.token_ids == std::vector<std::int64_t>{1, 4});
    CHECK(held_out.labels == std::vector<std::int64_t>{4, 5});
    CHECK(held_out.images[0][0].eq(1).all().item<bool>());
  }

  // Cells of 2 × 2 patches of 2 pixels. 8 × 8 pixels are 2 × 2 cells; 9 × 23 (rows × columns) are
  // rounded to 8 × 24.
  TEST_CASE("images that keep their sizes have the pixels of their grids, damaged ones, too") {
    const TempFolder folder;
    Scenario scenario = scenario_at(folder);
    Module projector{.name = "projector", .kind = ModuleKind::projector};
    projector.merge = 2;
    Module vision = scenario.model.modules[0];
    vision.patch = 2;
    vision.rotary = true;
    scenario.model = {{vision, projector, scenario.model.modules[1]},
                      {{ModuleId(0), ModuleId(1)}, {ModuleId(1), ModuleId(2)}}};
    scenario.weights = {{folder.path(), "", "qwen2_vl"}, {}, {}};
    spill(folder / "preprocessor_config.json",
          R"({"image_processor_type": "Qwen2VLImageProcessor", "patch_size": 2, "min_pixels": 16,
              "image_mean": 0.5, "image_std": 0.5})");
    write_png(folder / "dark.png", 0, 9, 23);
    const auto dataset = open_dataset(scenario, "");
    REQUIRE(dataset->training().size() == 2);
    CHECK(dataset->training()[0].items[0] == image_item({4, 4}));
    const Sample wide = dataset->training()[1];
    CHECK(wide.items[0] == image_item({4, 12}));
    CHECK(dataset->content(dataset->training()[0], {}).images.at(0).sizes() ==
          torch::IntArrayRef({3, 8, 8}));
    const torch::Tensor image = dataset->content(wide, {}).images.at(0);
    CHECK(image.sizes() == torch::IntArrayRef({3, 8, 24}));
    CHECK(image.eq(-1).all().item<bool>());
    if (kThreadSanitizer) return;
    const std::string whole = slurp(folder / "dark.png");
    spill(folder / "dark.png", whole.substr(0, whole.size() - 20));
    const torch::Tensor gray = dataset->content(wide, {}).images.at(0);
    CHECK(gray.sizes() == torch::IntArrayRef({3, 8, 24}));
    CHECK(gray.abs().max().item<double>() < 0.01);
  }

  TEST_CASE("audio: two frames per token of each clip, in order, decoded when asked for") {
    const TempFolder folder;
    const Scenario scenario = scenario_with_audio(folder);
    const auto dataset = open_dataset(scenario, "");
    REQUIRE(dataset->training().size() == 2);
    const Sample first = dataset->training()[0];
    CHECK((first.items == std::vector<Item>{{Modality::text, 1, 0},
                                            {Modality::audio, 10, 0},
                                            {Modality::text, 1, 0},
                                            {Modality::audio, 4, 0},
                                            {Modality::text, 1, 1}}));
    CHECK(dataset->remarks() == folder / "train.jsonl" + ": audio clips cut at 10 tokens: 1");
    const SampleContent content = dataset->content(first, {});
    REQUIRE(content.audio.size() == 2);
    CHECK(content.audio[0].sizes() == torch::IntArrayRef({20, 8}));
    CHECK(content.audio[1].sizes() == torch::IntArrayRef({8, 8}));
    const LogMel log_mel(scenario.model.modules[0]);
    CHECK(
        content.audio[1].allclose(log_mel.features(testing::cosine(1000, 16000, 800), 4), 0, 1e-2));
    // Away from the clip's beginning, and down to 40 dB below the largest power.
    const auto loud = [](const torch::Tensor& features) {
      const torch::Tensor inner = features.narrow(0, 4, 14);
      return inner.clamp_min(inner.max().item<double>() - 1);
    };
    CHECK(loud(content.audio[0])
              .allclose(loud(log_mel.features(testing::cosine(400, 16000, 3200), 10)), 0, 1e-3));
    CHECK(dataset->content(first, {.audio = false}).audio.empty());
    const SampleContent held_out = dataset->content(dataset->held_out()[0], {.text = false});
    REQUIRE(held_out.audio.size() == 1);
    CHECK(held_out.audio[0].equal(content.audio[1]));
    CHECK(held_out.token_ids.empty());
  }

  TEST_CASE("a clip damaged after its header is silent; too many of them end the run") {
    const TempFolder folder;
    const Scenario scenario = scenario_with_audio(folder);
    const std::string whole = slurp(folder / "tone.flac");
    spill(folder / "tone.flac", whole.substr(0, whole.size() / 2));
    const auto dataset = open_dataset(scenario, "");
    const Sample sample = dataset->training()[1];
    const SampleContent content = dataset->content(sample, {});
    CHECK(content.audio.at(0).equal(torch::full({8, 8}, -1.5F)));
    CHECK(content.labels.size() == 2);
    CHECK_THROWS_WITH_AS(dataset->content(sample, {}),
                         doctest::Contains("audio clips could not be decoded"), std::runtime_error);
  }

  TEST_CASE("an image damaged after its header is gray; too many of them end the run") {
    const TempFolder folder;
    Scenario scenario = scenario_at(folder);
    if (kThreadSanitizer) return;
    const std::string whole = slurp(folder / "red.png");
    spill(folder / "red.png", whole.substr(0, whole.size() - 20));
    const auto dataset = open_dataset(scenario, "");
    CHECK(dataset->remarks().empty());
    const Sample sample = dataset->training()[0];
    const SampleContent content = dataset->content(sample, {});
    CHECK(content.images[0].abs().max().item<double>() < 0.01);
    CHECK(content.labels.size() == 2);
    // One percent of the first hundred is one image.
    CHECK_THROWS_WITH_AS(dataset->content(sample, {}), doctest::Contains("could not be decoded"),
                         std::runtime_error);
  }
}

}  // namespace polyphony::exec
