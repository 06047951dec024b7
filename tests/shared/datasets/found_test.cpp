// Data sets on disk: handmade file headers, archives, conversations, and skipped samples.
#include "shared/datasets/found.h"

#include <doctest/doctest.h>

#include "shared/datasets/sound_length.h"
#include "shared/datasets/tar.h"
#include "shared/error.h"
#include "shared/files/file_part.h"
#include "tests/shared/support/temp_folder.h"

namespace polyphony {
namespace {

std::string bytes(std::initializer_list<int> values) {
  std::string text;
  for (const int value : values) text += static_cast<char>(value);
  return text;
}

// 640 × 480 each.
const std::string kPng = "\x89PNG\r\n\x1A\n" + bytes({0, 0, 0, 13}) + "IHDR" +
                         bytes({0, 0, 2, 0x80, 0, 0, 1, 0xE0, 8, 2});
const std::string kJpeg = bytes(
    {0xFF, 0xD8, 0xFF, 0xE0, 0, 4, 'J', 'F', 0xFF, 0xFF, 0xC2, 0, 17, 8, 1, 0xE0, 2, 0x80, 3});
const std::string kGif = "GIF89a" + bytes({0x80, 2, 0xE0, 1});
const std::string kWebp = "RIFF" + bytes({0, 0, 0, 0}) + "WEBPVP8X" +
                          bytes({10, 0, 0, 0, 0, 0, 0, 0, 0x7F, 2, 0, 0xDF, 1, 0});
const std::string kLossless = "RIFF" + bytes({0, 0, 0, 0}) + "WEBPVP8L" +
                              bytes({0, 0, 0, 0, 0x2F, 0x7F, 0xC2, 0x77, 0, 0, 0, 0, 0, 0});
const std::string kBmp = "BM" + std::string(16, '\0') + bytes({0x80, 2, 0, 0, 0xE0, 1, 0, 0});

// 1.5 seconds at 8 kHz, one byte per sample.
std::string wav() {
  const int size = 12000;
  return "RIFF" + bytes({0, 0, 0, 0}) + "WAVEfmt " +
         bytes({16, 0, 0, 0, 1, 0, 1, 0, 0x40, 0x1F, 0, 0, 0x40, 0x1F, 0, 0, 1, 0, 8, 0}) + "data" +
         bytes({size & 255, size >> 8, 0, 0}) + std::string(size, '\0');
}

std::string member(const std::string& name, const std::string& content, char type = '0') {
  std::string header(512, '\0');
  header.replace(0, name.size(), name);
  char size[13];
  std::snprintf(size, sizeof size, "%011zo", content.size());
  header.replace(124, 11, size, 11);
  header[156] = type;
  header.replace(257, 6, "ustar\0", 6);
  header.replace(148, 8, "        ");
  int sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  char check[16];
  std::snprintf(check, sizeof check, "%06o", sum);
  header.replace(148, 7, check, 7);
  return header + content + std::string((512 - content.size() % 512) % 512, '\0');
}

struct Scanned {
  std::vector<Found> found;
  std::vector<std::string> left_out;  // "name: why"
};
Scanned scan(const std::string& path, std::size_t limit = 1000) {
  Scanned all;
  find_samples(path, {.pictures = "",
                      .visit =
                          [&](Found one) {
                            all.found.push_back(std::move(one));
                            return all.found.size() < limit;
                          },
                      .leave_out =
                          [&](const std::string& name, const std::string& why) {
                            all.left_out.push_back(name + ": " + why);
                          },
                      .progress = [](double) {}});
  return all;
}

}  // namespace

TEST_SUITE("data sets") {
  TEST_CASE("image sizes are read from the first bytes; truncated images have none") {
    for (const std::string& head : {kPng, kJpeg, kGif, kWebp, kLossless, kBmp}) {
      CHECK(picture_size(head) == PictureSize{640, 480});
      for (std::size_t cut = 0; cut + 1 < head.size(); ++cut) {
        const auto size = picture_size(head.substr(0, cut));
        CHECK((!size || *size == PictureSize{640, 480}));
      }
    }
    CHECK_FALSE(picture_size("<svg width='640'>"));
    CHECK_FALSE(picture_size("\x89PNG\r\n\x1A\n" + std::string(16, '\0')));  // no pixels
  }

  TEST_CASE("durations of audio files") {
    REQUIRE(sound_length(wav()));
    CHECK(sound_length(wav())->count() == doctest::Approx(1.5));
    CHECK(sound_length(wav().substr(0, 44 + 8000))->count() ==
          doctest::Approx(1));  // truncated: the length of what exists
    // First page: 27 bytes, one segment, the identification header of 44.1 kHz; the last ends at
    // 88,200.
    const std::string head = "OggS" + std::string(22, '\0') + bytes({1, 30, 1}) + "vorbis" +
                             bytes({0, 0, 0, 0, 2, 0x44, 0xAC, 0, 0}) + std::string(14, '\0');
    const std::string tail =
        "OggS" + bytes({0, 4, 0x88, 0x58, 1, 0, 0, 0, 0, 0}) + std::string(13, '\0');
    REQUIRE(sound_length(head + tail));
    CHECK(sound_length(head + tail)->count() == doctest::Approx(2));
    CHECK_FALSE(sound_length("ID3"));
  }

  TEST_CASE("a folder: files of the same name are a sample, in the order of names") {
    const test::TempFolder folder;
    test::spill(folder / "b.png", kPng);
    test::spill(folder / "b.txt", "a dog\nde.utf8=ein Hund\nfr.utf8=un chien\n");
    test::spill(folder / "a.jpg", kJpeg);
    test::spill(folder / "a.txt", "two\nlines");
    test::spill(folder / "a.wav", wav());
    test::spill(folder / "c.png", "damaged");
    test::spill(folder / "d.gif", kGif);
    test::spill(folder / "README.txt", "of the folder");
    const Scanned all = scan(folder.path());
    REQUIRE(all.found.size() == 2);
    CHECK(all.found[0].conversation.answers() == "two\nlines");
    CHECK(all.found[0].sounds.size() == 1);
    CHECK(all.found[1].conversation.answers() == "a dog");
    CHECK(all.left_out == std::vector<std::string>{"c: damaged or unknown image", "d: no text"});
    CHECK(scan(folder.path(), 1).found.size() == 1);
  }

  TEST_CASE("tar shards: long names, groups up to the first dot, errors with name and byte") {
    const test::TempFolder folder;
    const std::string longest = std::string(120, 'n') + "/7.png";
    const std::string shard = member("x/6.seg.png", kPng) + member("x/6.txt", "six") +
                              member("././@LongLink", longest + '\0', 'L') +
                              member(longest.substr(0, 99), kJpeg) + member("d/", "", '5') +
                              member(std::string(90, 'n') + "/7.json", R"({"caption": "seven"})");
    test::spill(folder / "00.tar", shard + std::string(1024, '\0'));
    test::spill(folder / "01.tar",
                member("8.png", kPng) + member("8.txt", "eight"));  // no end mark
    const Scanned all = scan(folder.path());
    REQUIRE(all.found.size() == 3);
    CHECK(all.found[0].name == "x/6");
    CHECK(all.found[0].conversation.answers() == "six");
    CHECK(all.found[1].conversation.answers() == "seven");  // a text of another name
    CHECK(all.found[1].pictures.empty());
    CHECK(all.found[2].conversation.answers() == "eight");
    // An image is a part of its shard.
    REQUIRE(all.found[0].pictures.size() == 1);
    CHECK(read_part(all.found[0].pictures[0].file) == kPng);
    CHECK(read_part(all.found[2].pictures[0].file) == kPng);
    FilePart beyond = all.found[2].pictures[0].file;
    beyond.offset = 1 << 20;
    CHECK_THROWS_WITH_AS(read_part(beyond), doctest::Contains("ends before byte"), InputError);
    CHECK(all.left_out == std::vector<std::string>{std::string(120, 'n') + "/7: no text"});
    test::spill(folder / "cut.tar", shard.substr(0, 520));
    CHECK_THROWS_WITH_AS(scan(folder / "cut.tar"), doctest::Contains("truncated"), InputError);
    test::spill(folder / "no.tar", std::string(600, 'x'));
    CHECK_THROWS_WITH_AS(scan(folder / "no.tar"), doctest::Contains("not a tar archive"),
                         InputError);
  }

  TEST_CASE("conversations: prompt and answer, images by path, in lines or one array") {
    const test::TempFolder folder;
    test::spill(folder / "p.png", kPng);
    const std::string llava =
        R"({"image": "p.png", "conversations": [{"from": "human", "value": "<image>\nwhat?"}, {"from": "gpt", "value": "a cat"}]})";
    const std::string chat =
        R"({"images": ["p.png", "p.png"], "messages": [{"role": "user", "content": [{"type": "text", "text": "which"}]}, {"role": "assistant", "content": "the left"}]})";
    const std::string lost =
        R"({"image": "q.png", "messages": [{"role": "assistant", "content": "x"}]})";
    test::spill(folder / "a.jsonl", llava + "\n\n" + chat + "\n" + lost + "\n[1]\n");
    test::spill(folder / "a.json", "[" + llava + ", " + chat + "]");
    const Scanned lines = scan(folder / "a.jsonl"), array = scan(folder / "a.json");
    REQUIRE(lines.found.size() == 2);
    CHECK(lines.found[0].conversation.prompts() == "\nwhat?");
    CHECK(lines.found[0].conversation.answers() == "a cat");
    CHECK(lines.found[0].conversation.turns ==
          std::vector<Turn>{{Speaker::user, "<image>\nwhat?"}, {Speaker::assistant, "a cat"}});
    CHECK(lines.found[0].pictures[0].file == FilePart{folder / "p.png"});
    CHECK(lines.found[1].pictures.size() == 2);
    CHECK(lines.found[1].conversation.prompts() == "which");
    CHECK(lines.left_out ==
          std::vector<std::string>{"sample 2, " + (folder / "q.png") + ": missing image",
                                   "sample 3: no conversation"});
    CHECK(array.found.size() == 2);
    CHECK_THROWS_AS(scan(folder / "missing"), InputError);
  }
}

}  // namespace polyphony
