// Conversations with real images: pixels of the right file in the right place, held-out samples,
// and images that are damaged after their header.
#include "exec/data/conversation_dataset.h"

#include <doctest/doctest.h>
#include <png.h>

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

void write_png(const std::string& path, unsigned char red) {
  constexpr int kSide = 8;
  std::vector<unsigned char> pixels(3 * kSide * kSide, 0);
  for (std::size_t i = 0; i < pixels.size(); i += 3) pixels[i] = red;
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = image.height = kSide;
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
