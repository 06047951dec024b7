// Mutations of people's data sets: JSON lines of conversations, tar shards, images, and audio.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "exec/data/decode_image.h"
#include "exec/data/decode_sound.h"
#include "shared/datasets/conversation_index.h"
#include "shared/datasets/conversation_samples.h"
#include "shared/datasets/sample_records.h"
#include "shared/datasets/sound_length.h"
#include "shared/datasets/token_file.h"
#include "shared/files/whole.h"
#include "shared/random.h"
#include "tests/exec/support/sound_files.h"
#include "tests/fuzz/fuzz.h"
#include "tests/shared/support/tar_files.h"
#include "tests/shared/support/temp_folder.h"
#include "tests/shared/support/token_files.h"

namespace polyphony {
namespace {

using test::mutated_lines;
using test::slurp;
using test::spill;
using test::tar_member;
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

// A tenth of a second.
std::string small_sound(int format) {
  return exec::testing::sound_file(format, 8000, exec::testing::cosine(500, 8000, 800));
}

Scenario scenario_in(const TempFolder& folder, const std::string& path) {
  spill(folder / "tokenizer.json", kTokenizer);
  spill(folder / "tokenizer_config.json", R"({"eos_token": "</s>"})");
  spill(folder / "a.png", slurp(kImages + "rgb.png"));
  spill(folder / "a.wav", small_sound(exec::testing::kWav16));
  Module vision{.name = "vision", .kind = ModuleKind::vision};
  vision.image_size = 8;
  vision.patch = 4;
  Module audio{.name = "audio", .kind = ModuleKind::audio};
  audio.mel_bins = 8;
  audio.audio_tokens = 4;
  Module language{.name = "language", .kind = ModuleKind::language};
  language.vocab = 8;
  Scenario scenario;
  scenario.model = {{vision, audio, language},
                    {{ModuleId(0), ModuleId(2)}, {ModuleId(1), ModuleId(2)}}};
  ConversationData source{path, folder / "tokenizer.json"};
  source.chat = ChatTemplate::plain;
  source.most_left_out = 0.5;
  scenario.data.source = source;
  scenario.data.sequence = 12;
  return scenario;
}

// Labels are ids that follow, every image and clip is of the data set, and no sample is too long.
void check_samples(const ConversationSamples& all) {
  for (std::size_t i = 0; i < all.samples().size(); ++i) {
    std::size_t tokens = 0, labels = 0, images = 0, clips = 0;
    for (const Item& item : all.samples()[i].items) {
      if (item.modality == Modality::image) ++images;
      if (item.modality == Modality::audio) ++clips;
      if (item.modality != Modality::text) continue;
      tokens += static_cast<std::size_t>(item.tokens);
      labels += static_cast<std::size_t>(item.loss_tokens);
      CHECK(item.loss_tokens <= item.tokens);
    }
    CHECK(tokens == all.ids(i).size());
    CHECK(labels == all.labels(i).size());
    CHECK(images == all.images(i).size());
    CHECK(clips == all.clips(i).size());
    CHECK(labels > 0);
  }
}

}  // namespace

TEST_CASE("fuzz: JSON lines of conversations") {
  const std::string lines =
      R"({"image": "a.png", "conversations": [{"from": "human", "value": "<image>a"}, {"from": "gpt", "value": "b"}]}
{"images": ["a.png", "a.png"], "messages": [{"role": "system", "content": "a"}, {"role": "user", "content": [{"type": "image", "image": "a.png"}, {"type": "text", "text": "a b"}]}, {"role": "assistant", "content": "aaaa"}]}
{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "b"}, {"role": "assistant", "content": "a"}]}
{"audio": "a.wav", "messages": [{"role": "user", "content": "<audio>a"}, {"role": "assistant", "content": "b"}]}
{"messages": [{"role": "user", "content": [{"type": "audio", "audio": "a.wav"}, {"type": "text", "text": "a"}]}, {"role": "assistant", "content": "b"}]}
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
                            tar_member("2.json", R"({"caption": "b"})") +
                            tar_member("3.flac", small_sound(exec::testing::kFlac16)) +
                            tar_member("3.txt", "b") + std::string(1024, '\0');
  const TempFolder folder;
  const std::string path = folder / "a.tar";
  const Scenario scenario = scenario_in(folder, path);
  fuzz::check_reader([&](std::uint64_t seed) { return mutated_bytes(seed, shard); },
                     [&](const std::string& text) {
                       spill(path, text);
                       check_samples(read_conversations(scenario, path));
                     });
}

// Whatever is in an index's place, the samples are those of the shard. A mutation without a change
// leaves the index as it is.
TEST_CASE("fuzz: indexes of tar shards") {
  const TempFolder folder;
  const std::string path = folder / "a.tar", indexes = folder / "indexes";
  const Scenario scenario = scenario_in(folder, path);
  spill(path, tar_member("1.png", slurp(kImages + "rgb.png")) + tar_member("1.txt", "a b") +
                  tar_member("2.flac", small_sound(exec::testing::kFlac16)) +
                  tar_member("2.txt", "b") + std::string(1024, '\0'));
  const ConversationSamples right = read_conversations(scenario, path);
  read_conversations(scenario, path, indexes);
  const IndexName name = index_name(scenario, path, indexes).value();
  const std::string whole = slurp(name.file);
  for (std::uint64_t seed = 0; seed < fuzz::rounds(); ++seed) {
    const std::string bytes = mutated_bytes(seed, whole);
    spill(name.file, bytes);
    CHECK(indexed_samples(name).has_value() == (bytes == whole));
    const ConversationSamples read = read_conversations(scenario, path, indexes);
    CHECK(read.samples() == right.samples());
    CHECK(std::ranges::equal(read.ids(0), right.ids(0)));
    CHECK(read.images(0) == right.images(0));
    CHECK(read.clips(1) == right.clips(1));
    CHECK(slurp(name.file) == whole);
  }
}

// Nothing is read beyond a record's bytes, and what is accepted is consistent.
TEST_CASE("fuzz: records of samples") {
  const std::vector<ItemNumbers> items{{0, 3, 1}, {1, 4, 0}, {2, 2, 0}};
  const std::vector<std::int32_t> ids{1, 2, 3}, labels{4};
  const std::vector<MediaPlace> images{{512, 7, 0, 0}}, clips{{1024, 9, 1, 0}};
  std::string whole;
  append_record({items, ids, labels, images, clips}, whole);
  append_record({items, ids, labels, images, clips}, whole);
  fuzz::check_reader([&](std::uint64_t seed) { return mutated_bytes(seed, whole); },
                     [&](const std::string& bytes) {
                       for (std::size_t at = 0; at < bytes.size();) {
                         const auto record = record_at(bytes, at, 2);
                         if (!record)
                           throw InputError("record", "", "is damaged", "write it again");
                         std::size_t tokens = 0;
                         for (const Item& item : items_of(*record))
                           if (item.modality == Modality::text)
                             tokens += static_cast<std::size_t>(item.tokens);
                         CHECK(tokens == record->ids.size());
                         for (const MediaPlace& place : record->images) CHECK(place.path < 2);
                         CHECK(record->end > at);
                         CHECK(record->end <= bytes.size());
                         at = record->end;
                       }
                     });
}

// An index that is accepted leads to all ids of the .bin file, and to no byte beyond it.
TEST_CASE("fuzz: indexes of token files") {
  const test::Documents documents{{1, 2, 3}, {4, 5}, {}, {6, 7, 8, 9}};
  const std::string index = test::index_of(documents, 8, 2).bytes();
  const TempFolder folder;
  const std::string name = folder / "a";
  spill(name + ".bin", test::ids_of<std::uint16_t>(documents));
  fuzz::check_reader([&](std::uint64_t seed) { return mutated_bytes(seed, index); },
                     [&](const std::string& text) {
                       spill(name + ".idx", text);
                       const TokenFile file(name, "test");
                       const std::int64_t tokens = file.tokens();
                       CHECK((tokens == 9 || tokens == 18));  // ids of 2 bytes or of one
                       CHECK(std::ssize(file.read(0, tokens, 10)) == tokens);
                       CHECK(std::cmp_equal(file.samples(1).size(), tokens - 1));
                       file.check_sequences();
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

TEST_CASE("fuzz: WAV, FLAC and Ogg audio") {
  const std::vector<std::string> clips{
      small_sound(exec::testing::kWav16), small_sound(exec::testing::kWavFloat),
      small_sound(exec::testing::kFlac16), small_sound(exec::testing::kVorbis)};
  fuzz::check_reader(
      // Many changes are in the headers, whose bytes mean more than those of samples.
      [&](std::uint64_t seed) {
        const std::string& clip = clips[seed / 8 % clips.size()];
        const std::size_t begin = seed % 2 && seed % 8 < 7 ? 100 : clip.size();
        return mutated_bytes(seed, clip.substr(0, begin)) + clip.substr(begin);
      },
      [&](const std::string& bytes) {
        if (const auto length = sound_length(bytes)) CHECK(length->count() > 0);
        const std::vector<float> samples = exec::decode_sound(bytes, "clip", Seconds(2));
        CHECK(!samples.empty());
        CHECK(samples.size() < 16000 * 3);
        for (const float sample : samples) REQUIRE(std::isfinite(sample));
      });
}

}  // namespace polyphony
