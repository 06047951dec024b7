// The index of a data set of tar shards: it gives what the shards give, is replaced when something
// that samples depend on changes or when it is damaged, and is written by one reader alone.
#include "shared/datasets/conversation_index.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include "shared/error.h"
#include "tests/shared/support/tar_files.h"
#include "tests/shared/support/temp_folder.h"

namespace polyphony {
namespace {

namespace fs = std::filesystem;
using test::slurp;
using test::spill;
using test::tar_member;
using test::TempFolder;

const char* const kTokenizer =
    R"({"added_tokens": [{"id": 3, "content": "</s>", "special": true, "normalized": false,
         "lstrip": false, "rstrip": false, "single_word": false}],
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
        "model": {"type": "BPE", "merges": [], "vocab": {"a": 0, "b": 1, "Ġ": 2}}})";
// 8 × 8 pixels: the header is all that is read.
const std::string kPng("\x89PNG\r\n\x1A\n\0\0\0\x0DIHDR\0\0\0\x08\0\0\0\x08\x08\x02", 26);

// Two samples, and one whose text the tokenizer does not know.
std::string shard(const std::string& first, const std::string& second) {
  return tar_member("1.png", kPng) + tar_member("1.txt", first) + tar_member("2.png", kPng) +
         tar_member("2.txt", second) + tar_member("3.txt", "z") + std::string(1024, '\0');
}

struct Place {
  TempFolder folder;
  std::string path = folder / "a.tar", indexes = folder / "indexes/here";
  Scenario scenario;

  Place() {
    spill(folder / "tokenizer.json", kTokenizer);
    spill(folder / "tokenizer_config.json", R"({"eos_token": "</s>"})");
    spill(path, shard("a b", "b"));
    Module vision{.name = "vision", .kind = ModuleKind::vision};
    vision.image_size = 8;
    vision.patch = 4;
    Module language{.name = "language", .kind = ModuleKind::language};
    language.vocab = 8;
    scenario.model = {{vision, language}, {{ModuleId(0), ModuleId(1)}}};
    ConversationData source{path, folder / "tokenizer.json"};
    source.chat = ChatTemplate::plain;
    source.most_left_out = 0.9;
    scenario.data.source = source;
  }
  ConversationData& source() { return std::get<ConversationData>(scenario.data.source); }
  ConversationSamples plain() const { return read_conversations(scenario, path); }
  ConversationSamples read() const { return read_conversations(scenario, path, indexes); }
  IndexName name() const { return index_name(scenario, path, indexes).value(); }
  bool has_index() const { return indexed_samples(name()).has_value(); }
};

bool same(const ConversationSamples& a, const ConversationSamples& b) {
  if (a.samples() != b.samples() || a.remarks() != b.remarks()) return false;
  for (std::size_t i = 0; i < a.samples().size(); ++i) {
    const auto equal = [](auto x, auto y) {
      return std::equal(x.begin(), x.end(), y.begin(), y.end());
    };
    if (!equal(a.ids(i), b.ids(i)) || !equal(a.labels(i), b.labels(i)) ||
        a.images(i) != b.images(i) || a.clips(i) != b.clips(i))
      return false;
  }
  return true;
}

}  // namespace

TEST_SUITE("conversation index") {
  TEST_CASE("an index gives what the shards give, and spares reading them") {
    const Place place;
    const ConversationSamples plain = place.plain();
    REQUIRE(plain.samples().size() == 2);
    CHECK(plain.images(1).at(0).path == place.path);
    CHECK(!plain.remarks().empty());
    CHECK_FALSE(place.has_index());
    CHECK(same(place.read(), plain));
    CHECK(place.has_index());
    // Other bytes of the same size and time are not noticed, so the shard is not read.
    const auto time = fs::last_write_time(place.path);
    spill(place.path, shard("b b", "a"));
    fs::last_write_time(place.path, time);
    CHECK_FALSE(same(place.plain(), plain));
    CHECK(same(place.read(), plain));
  }

  TEST_CASE("an index is replaced when a shard, the tokenizer or a setting has changed") {
    Place place;
    const ConversationSamples before = place.read();
    const auto check_replaced = [&] {
      CHECK_FALSE(place.has_index());
      CHECK(same(place.read(), place.plain()));
      CHECK(place.has_index());
    };
    const auto later = [](const std::string& path) {
      fs::last_write_time(path, fs::last_write_time(path) + std::chrono::seconds(1));
    };
    spill(place.path, shard("b b", "a"));
    later(place.path);
    check_replaced();
    CHECK_FALSE(same(place.read(), before));
    spill(place.path, shard("b b", "a a a"));
    check_replaced();
    later(place.folder / "tokenizer.json");
    check_replaced();
    later(place.folder / "tokenizer_config.json");
    check_replaced();
    place.source().system = "b";
    check_replaced();
    place.source().most_left_out = 0.8;
    check_replaced();
    place.scenario.data.sequence = 30;
    check_replaced();
    place.scenario.model.modules[0].patch = 2;
    check_replaced();
    place.scenario.model.modules[1].vocab = 9;
    check_replaced();
  }

  TEST_CASE(
      "an index keeps the grids of images, and is replaced when the image processor changes") {
    Place place;
    place.scenario.model.modules[0].rotary = true;
    place.scenario.weights = {{place.folder.path(), "", "qwen2_vl"}, {}};
    const auto write = [&](const std::string& keys) {
      spill(place.folder / "preprocessor_config.json",
            R"({"image_processor_type": "Qwen2VLImageProcessor", "patch_size": 4, "merge_size": 1,
                "min_pixels": )" +
                keys + "}");
    };
    std::string wide = kPng;
    wide[19] = 20;  // pixels: 5 patches of 4, in 2 rows
    spill(place.path,
          tar_member("1.png", wide) + tar_member("1.txt", "a b") + std::string(1024, '\0'));
    write("1");
    CHECK(place.read().samples().at(0).items.at(0) == image_item({2, 5}));
    CHECK(place.has_index());
    CHECK(same(place.read(), place.plain()));
    // β = √(640 / 160) = 2: 4 × 10 patches.
    write("640");
    CHECK_FALSE(place.has_index());
    CHECK(place.read().samples().at(0).items.at(0) == image_item({4, 10}));
    CHECK(same(place.read(), place.plain()));
  }

  TEST_CASE("a damaged index is replaced, wherever the damage is") {
    const Place place;
    const ConversationSamples plain = place.plain();
    place.read();
    const std::string file = place.name().file, whole = slurp(file);
    for (std::size_t at = 0; at < whole.size(); ++at) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ 0x80);
      spill(file, damaged);
      CHECK_FALSE(place.has_index());
    }
    for (const std::string& damaged :
         {std::string(), whole.substr(0, 10), whole.substr(0, whole.size() - 8), whole + whole}) {
      spill(file, damaged);
      CHECK_FALSE(place.has_index());
      CHECK(same(place.read(), plain));
      CHECK(slurp(file) == whole);
    }
  }

  TEST_CASE("readers that begin together write one index") {
    const Place place;
    const ConversationSamples plain = place.plain();
    std::vector<std::thread> readers;
    std::atomic<int> right = 0;
    for (int i = 0; i < 8; ++i)
      readers.emplace_back([&] { right += same(place.read(), plain) ? 1 : 0; });
    for (std::thread& reader : readers) reader.join();
    CHECK(right == 8);
    std::vector<std::string> left;
    for (const auto& entry : fs::directory_iterator(place.indexes))
      left.push_back(entry.path().extension());
    std::sort(left.begin(), left.end());
    CHECK(left == std::vector<std::string>{".lock", ".samples"});
  }

  TEST_CASE("there is no index of other data sets, of refused ones, or where none can be written") {
    Place place;
    spill(place.folder / "a.jsonl", R"({"text": "a b"})"
                                    "\n");
    const std::string lines = place.folder / "a.jsonl";
    CHECK(read_conversations(place.scenario, lines, place.indexes).samples().size() == 1);
    CHECK_FALSE(fs::exists(place.indexes));
    place.indexes = place.folder / "a.jsonl/indexes";
    CHECK(same(place.read(), place.plain()));
    place.indexes = place.folder / "more";
    place.source().most_left_out = 0;
    CHECK_THROWS_AS(place.read(), InputError);
    CHECK_FALSE(place.has_index());
    CHECK_FALSE(fs::exists(place.name().file + ".partial"));
    fs::remove(place.path);
    CHECK_THROWS_WITH_AS(place.read(), doctest::Contains("does not exist"), InputError);
  }
}

}  // namespace polyphony
