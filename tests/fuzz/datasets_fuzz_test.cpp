// Mutations of people's data sets: JSON lines of conversations, tar shards, and images.
#include <filesystem>

#include "exec/data/decode_image.h"
#include "shared/datasets/conversation_samples.h"
#include "shared/files/whole.h"
#include "shared/random.h"
#include "tests/fuzz/fuzz.h"
#include "tests/shared/support/temp_folder.h"

namespace polyphony {
namespace {

using test::mutated_lines;
using test::slurp;
using test::spill;
using test::TempFolder;

const std::string kImages = "tests/exec/data/images/";

// Returns the bytes with up to eight of them changed, or truncated.
std::string mutated_bytes(std::uint64_t seed, std::string bytes) {
  if (seed % 8 == 7) return bytes.substr(0, random_bits(seed, 0) % bytes.size());
  for (std::uint64_t i = 0; i < seed % 8; ++i)
    bytes[random_bits(seed, 2 * i) % bytes.size()] =
        static_cast<char>(random_bits(seed, 2 * i + 1) % 256);
  return bytes;
}

const char* const kTokenizer =
    R"({"added_tokens": [{"id": 3, "content": "</s>", "special": true, "normalized": false,
         "lstrip": false, "rstrip": false, "single_word": false}],
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
        "model": {"type": "BPE", "merges": [], "vocab": {"a": 0, "b": 1, "Ġ": 2}}})";

Scenario scenario_in(const TempFolder& folder, const std::string& path) {
  spill(folder / "tokenizer.json", kTokenizer);
  spill(folder / "tokenizer_config.json", R"({"eos_token": "</s>"})");
  spill(folder / "a.png", slurp(kImages + "rgb.png"));
  Module vision{.name = "vision", .kind = ModuleKind::vision};
  vision.image_size = 8;
  vision.patch = 4;
  Module language{.name = "language", .kind = ModuleKind::language};
  language.vocab = 8;
  Scenario scenario;
  scenario.model = {{vision, language}, {{ModuleId(0), ModuleId(1)}}};
  ConversationData source{path, folder / "tokenizer.json"};
  source.chat = ChatTemplate::plain;
  source.most_left_out = 0.5;
  scenario.data.source = source;
  scenario.data.sequence = 12;
  return scenario;
}

// Labels are ids that follow, every image is of the data set, and no sample is too long.
void check_samples(const ConversationSamples& all) {
  for (std::size_t i = 0; i < all.samples().size(); ++i) {
    std::size_t tokens = 0, labels = 0, images = 0;
    for (const Item& item : all.samples()[i].items) {
      if (item.modality == Modality::image) ++images;
      if (item.modality != Modality::text) continue;
      tokens += static_cast<std::size_t>(item.tokens);
      labels += static_cast<std::size_t>(item.loss_tokens);
      CHECK(item.loss_tokens <= item.tokens);
    }
    CHECK(tokens == all.ids(i).size());
    CHECK(labels == all.labels(i).size());
    CHECK(images == all.images(i).size());
    CHECK(labels > 0);
  }
}

std::string tar_member(const std::string& name, const std::string& content) {
  std::string header(512, '\0');
  header.replace(0, name.size(), name);
  char text[32];
  std::snprintf(text, sizeof text, "%011zo", content.size());
  header.replace(124, 11, text, 11);
  header[156] = '0';
  header.replace(257, 6, "ustar\0", 6);
  header.replace(148, 8, "        ");
  int sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  std::snprintf(text, sizeof text, "%06o", static_cast<unsigned>(sum));
  header.replace(148, 7, text, 7);
  return header + content + std::string((512 - content.size() % 512) % 512, '\0');
}

}  // namespace

TEST_CASE("fuzz: JSON lines of conversations") {
  const std::string lines =
      R"({"image": "a.png", "conversations": [{"from": "human", "value": "<image>a"}, {"from": "gpt", "value": "b"}]}
{"images": ["a.png", "a.png"], "messages": [{"role": "system", "content": "a"}, {"role": "user", "content": [{"type": "image", "image": "a.png"}, {"type": "text", "text": "a b"}]}, {"role": "assistant", "content": "aaaa"}]}
{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "b"}, {"role": "assistant", "content": "a"}]}
)";
  const TempFolder folder;
  const std::string path = folder / "a.jsonl";
  const Scenario scenario = scenario_in(folder, path);
  fuzz::check_reader(
      [&](std::uint64_t seed) {
        return seed % 2 ? mutated_lines(seed, lines, "\"{}[]:,<>") : mutated_bytes(seed, lines);
      },
      [&](const std::string& text) {
        spill(path, text);
        check_samples(read_conversations(scenario, path));
      });
}

TEST_CASE("fuzz: tar shards") {
  const std::string image = slurp(kImages + "rgb.png");
  const std::string shard = tar_member("1.png", image) + tar_member("1.txt", "a b") +
                            tar_member("2.png", image) +
                            tar_member("2.json", R"({"caption": "b"})") + std::string(1024, '\0');
  const TempFolder folder;
  const std::string path = folder / "a.tar";
  const Scenario scenario = scenario_in(folder, path);
  fuzz::check_reader([&](std::uint64_t seed) { return mutated_bytes(seed, shard); },
                     [&](const std::string& text) {
                       spill(path, text);
                       check_samples(read_conversations(scenario, path));
                     });
}

TEST_CASE("fuzz: PNG, JPEG and WebP images") {
  std::vector<std::string> images;
  for (const auto& entry : std::filesystem::directory_iterator(kImages))
    if (entry.path().extension() != ".rgb") images.push_back(slurp(entry.path().string()));
  REQUIRE(images.size() > 8);
  fuzz::check_reader(
      [&](std::uint64_t seed) { return mutated_bytes(seed, images[seed % images.size()]); },
      [&](const std::string& bytes) {
        const exec::DecodedImage image = exec::decode_image(bytes, "image");
        CHECK(image.rgb.size() == static_cast<std::size_t>(3 * image.width * image.height));
      });
}

}  // namespace polyphony
