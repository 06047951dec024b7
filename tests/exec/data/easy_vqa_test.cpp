#include "exec/data/easy_vqa.h"

#include <doctest/doctest.h>
#include <png.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "tests/exec/support/temp_folder.h"

namespace polyphony::exec {
namespace {

// libpng leaves a damaged image by longjmp(). ThreadSanitizer then assumes that the calls left
// never return, and ends the process although there is no race.
#if defined(__SANITIZE_THREAD__)
constexpr bool kSanitizesThreads = true;
#else
constexpr bool kSanitizesThreads = false;
#endif

using testing::refusal;
using testing::slurp;
using testing::spill;
using testing::TempFolder;

Scenario vqa_scenario(const std::string& folder, int image_size) {
  Module vision{.name = "vision", .kind = ModuleKind::vision};
  vision.image_size = image_size;
  vision.patch = 8;
  Module projector{.name = "projector", .kind = ModuleKind::projector};
  projector.merge = 2;
  Module language{.name = "language", .kind = ModuleKind::language};
  language.vocab = 40;
  Scenario scenario;
  scenario.file = "vqa.json";
  scenario.model = {{vision, projector, language},
                    {{ModuleId(0), ModuleId(1)}, {ModuleId(1), ModuleId(2)}}};
  scenario.data.source = EasyVqaData{folder};
  scenario.data.global_batch = 64;
  return scenario;
}

// The folder that scripts/setup fills, with its defaults.
std::string cache() {
  if (const char* path = std::getenv("POLYPHONY_CACHE")) return path;
  if (const char* path = std::getenv("XDG_CACHE_HOME")) return std::string(path) + "/polyphony";
  const char* home = std::getenv("HOME");
  return std::string(home ? home : "") + "/.cache/polyphony";
}
// The real data set, read once.
const EasyVqa& real_set() {
  static const EasyVqa set(vqa_scenario("", 64), cache());
  return set;
}

void write_png(const std::string& path, int size, unsigned char red) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::vector<unsigned char> pixels(static_cast<std::size_t>(3 * size * size), 0);
  for (std::size_t i = 0; i < pixels.size(); i += 3) pixels[i] = red;
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = image.height = static_cast<png_uint_32>(size);
  image.format = PNG_FORMAT_RGB;
  REQUIRE(png_image_write_to_file(&image, path.c_str(), 0, pixels.data(), 0, nullptr));
}

// Two training questions about two images, and one held-out question.
void make_small_set(const TempFolder& folder) {
  spill(folder / "answers.txt", "yes\nred\n");
  spill(folder / "train/questions.json",
        "[[\"Is it red?\", \"yes\", 0], [\"what colour is it?\", \"red\", 1]]");
  spill(folder / "test/questions.json", "[[\"what is red?\", \"red\", 0]]");
  write_png(folder / "train/images/0.png", 16, 255);
  write_png(folder / "train/images/1.png", 16, 0);
  write_png(folder / "test/images/0.png", 16, 51);
}

}  // namespace

TEST_SUITE("dataset") {
  TEST_CASE("easy-VQA has its 38,575 training and 9,673 held-out questions") {
    const std::vector<Sample> held_out = real_set().held_out();
    REQUIRE(held_out.size() == 9673);
    CHECK(held_out.front().id == 38575);  // ids go on from the training questions'
    CHECK(held_out.back().id == 48247);
    // 64 patches of 8 × 8 pixels; "what is the blue shape?" is 5 words and the query token, whose
    // position has the one label.
    const Sample first{0, {{Modality::image, 64, 0}, {Modality::text, 6, 1}}};
    // Sorted words: a black blue brown circle color contain does gray green image in is no not of
    // present rectangle red shape teal the there triangle what yellow = 0 to 25; query 26;
    // answers.txt: circle green red gray yes teal black rectangle … from 27.
    const SampleContent content = real_set().content(first, {});
    CHECK(content.token_ids == std::vector<std::int64_t>{24, 12, 21, 2, 19, 26});
    CHECK(content.labels == std::vector<std::int64_t>{34});
    CHECK(real_set().vocabulary().size() == 40);
    CHECK(real_set().vocabulary().label("rectangle") == 34);
  }

  TEST_CASE("easy-VQA's pixels equal those of another decoder") {
    // train/images/0.png: corner (248, 234, 230), all bytes add up to 2,574,890 (decoded with
    // Python's zlib, filters undone by hand).
    const torch::Tensor image = real_set().content({0, {}}, {true, false}).images.at(0);
    REQUIRE(image.sizes() == torch::IntArrayRef({3, 64, 64}));
    const torch::Tensor bytes = ((image.to(torch::kFloat64) + 1) * 127.5).round();
    CHECK(bytes[0][0][0].item<double>() == 248);
    CHECK(bytes[1][0][0].item<double>() == 234);
    CHECK(bytes[2][0][0].item<double>() == 230);
    CHECK(bytes.sum().item<double>() == 2574890);
    CHECK(image.min().item<double>() >= -1);
    CHECK(image.max().item<double>() <= 1);
  }

  TEST_CASE("an epoch has every training question once and no held-out question") {
    std::vector<std::uint32_t> ids;
    for (std::uint64_t step = 0; step < 603; ++step)  // 602 · 64 = 38,528 and 47 more
      for (const Sample& sample : real_set().batch(step).samples) ids.push_back(sample.id);
    ids.resize(38575);
    std::sort(ids.begin(), ids.end());
    CHECK(std::adjacent_find(ids.begin(), ids.end()) == ids.end());
    CHECK(ids.back() == 38574);
  }

  TEST_CASE("guessing from the question only answers at most 67.8 % of easy-VQA") {
    // By question text: the answer that most held-out questions with that text have (no guesser can
    // do better), and the one that most training questions have (what a model without eyes could
    // learn).
    using Counts = std::map<std::vector<std::int64_t>, std::map<std::int64_t, int>>;
    Counts learned, best;
    const auto count = [](Counts& counts, std::uint32_t id) {
      const SampleContent content = real_set().content({id, {}}, {false, true});
      ++counts[content.token_ids][content.labels.at(0)];
    };
    for (std::uint32_t id = 0; id < 38575; ++id) count(learned, id);
    for (std::uint32_t id = 38575; id < 48248; ++id) count(best, id);
    const auto more = [](const auto& a, const auto& b) { return a.second < b.second; };
    int right_at_best = 0, right_learned = 0;
    for (const auto& [question, answers] : best) {
      right_at_best += std::max_element(answers.begin(), answers.end(), more)->second;
      const auto& seen = learned.at(question);
      const auto guess = answers.find(std::max_element(seen.begin(), seen.end(), more)->first);
      right_learned += guess == answers.end() ? 0 : guess->second;
    }
    CHECK(best.size() == 107);
    CHECK(right_at_best == 6559);  // 67.8 % of 9,673
    CHECK(right_learned == 6475);  // 66.9 %; ties: the first answer in answers.txt
  }

  TEST_CASE("a small data set of the same format") {
    const TempFolder folder;
    make_small_set(folder);
    const EasyVqa set(vqa_scenario(folder.path(), 16), "nowhere");
    // Words: colour is it red what = 0 to 4, query 5, yes 6, red 7.
    const SampleContent content = set.content(set.held_out().at(0), {});
    CHECK(content.token_ids == std::vector<std::int64_t>{4, 1, 3, 5});
    CHECK(content.labels == std::vector<std::int64_t>{7});
    // Red 51 is 51 / 127.5 − 1 = −0.6.
    CHECK(content.images.at(0)[0].allclose(torch::full({16, 16}, -0.6)));
    CHECK(content.images.at(0)[1].equal(torch::full({16, 16}, -1.0)));
    Scenario text_only = vqa_scenario(folder.path(), 16);
    text_only.model.modules.erase(text_only.model.modules.begin(),
                                  text_only.model.modules.begin() + 2);
    const EasyVqa blind(text_only, "");
    CHECK((blind.held_out().at(0).items == std::vector<Item>{{Modality::text, 4, 1}}));
    CHECK(blind.content(blind.held_out().at(0), {}).images.empty());
  }

  TEST_CASE("errors name missing and damaged files, and what to do" *
            doctest::skip(kSanitizesThreads)) {
    const TempFolder folder;
    const auto refused = [&](int image_size = 16) {
      return refusal([&] {
        const EasyVqa set(vqa_scenario(folder.path(), image_size), "");
        for (const Sample& sample : set.batch(0).samples) set.content(sample, {});
      });
    };
    CHECK(refused() == "vqa.json: /data/source: the data set easy-vqa is not in " + folder.path() +
                           " (run scripts/setup, or name the folder of the unpacked package: "
                           "{\"easy-vqa\": \"FOLDER\"})");
    make_small_set(folder);
    REQUIRE(refused().empty());
    CHECK(refused(32) == folder / "train/images/0.png" +
                             ": has 16 × 16 pixels, but the model expects 32 × 32 (set "
                             "model.vision.image_size to the images' size)");
    const std::string png = slurp(folder / "train/images/1.png");
    for (const std::size_t length :
         {std::size_t{0}, std::size_t{7}, png.size() / 2, png.size() - 1}) {
      spill(folder / "train/images/1.png", png.substr(0, length));
      CHECK(refused() == folder / "train/images/1.png" +
                             ": is not a complete PNG file (unpack the data set again)");
    }
    std::string bent = png;
    char& pixel = bent[bent.size() - 20];  // 12 bytes of trailer and 4 of checksum end the pixels
    pixel = static_cast<char>(pixel ^ 1);
    spill(folder / "train/images/1.png", bent);
    CHECK(refused().find(folder / "train/images/1.png" + ": is a damaged PNG image: ") == 0);
    std::filesystem::remove(folder / "train/images/1.png");
    CHECK(refused() ==
          folder / "train/images/1.png" + ": cannot be read (unpack the data set again)");

    make_small_set(folder);
    const std::string questions = folder / "test/questions.json";
    spill(questions, "[[\"what is red?\", \"re");
    CHECK(refused().find(questions + ": not JSON: ") == 0);
    spill(questions, "[[\"what is red?\", \"red\"]]");
    CHECK(refused() == questions + ": /0: list has 2 values (it must have 3)");
    spill(questions, "[[\"what is red?\", 3, 0]]");
    CHECK(
        refused() ==
        questions +
            ": /0: the entry is not [question, answer, image number] (unpack the data set again)");
    spill(questions, "[[\"what is red?\", \"green\", 0]]");
    CHECK(refused() ==
          questions + ": /0/1: \"green\" is not in answers.txt (unpack the data set again)");
    spill(questions, "[[\"what is green?\", \"red\", 0]]");
    CHECK(refused() ==
          questions +
              ": /0/0: the word \"green\" is in no training question (unpack the data set again)");
  }

  TEST_CASE("an error for a model that is too small for the questions states the size needed") {
    const TempFolder folder;
    make_small_set(folder);
    Scenario scenario = vqa_scenario(folder.path(), 16);
    scenario.model.modules[2].vocab = 7;
    CHECK(refusal([&] { EasyVqa(scenario, ""); }) ==
          "vqa.json: /model/language/vocab: 7 token ids are too few; easy-vqa needs 8 (write 8 or "
          "more)");
    scenario.model.modules[2].vocab = 8;
    scenario.data.sequence = 5;  // 4 patches are 1 position; 4 words and the query token
    CHECK(refusal([&] { EasyVqa(scenario, ""); }) ==
          "vqa.json: /data/sequence: sequence must be at least 6 tokens, the length of question 1 "
          "of " +
              (folder / "train/questions.json") +
              " with its image, got 5 (increase it, or remove the key)");
    scenario.data.sequence = 6;
    CHECK_NOTHROW(EasyVqa(scenario, ""));
  }
}

}  // namespace polyphony::exec
