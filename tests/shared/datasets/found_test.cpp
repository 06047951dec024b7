// Data sets on disk: handmade file headers, archives, conversations, and skipped samples.
#include "shared/datasets/found.h"

#include <doctest/doctest.h>

#include "shared/datasets/sound_length.h"
#include "shared/datasets/tar.h"
#include "shared/error.h"
#include "shared/files/file_part.h"
#include "tests/shared/support/tar_files.h"
#include "tests/shared/support/temp_folder.h"

namespace polyphony {
namespace {

std::string bytes(std::initializer_list<int> values) {
  std::string text;
  for (const int value : values) text += static_cast<char>(value);
  return text;
}

// 640 × 480 each.
const std::string kFoundPng = "\x89PNG\r\n\x1A\n" + bytes({0, 0, 0, 13}) + "IHDR" +
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
std::string wav(int size = 12000) {
  return "RIFF" + bytes({0, 0, 0, 0}) + "WAVEfmt " +
         bytes({16, 0, 0, 0, 1, 0, 1, 0, 0x40, 0x1F, 0, 0, 0x40, 0x1F, 0, 0, 1, 0, 8, 0}) + "data" +
         bytes({size & 255, size >> 8 & 255, size >> 16, 0}) +
         std::string(static_cast<std::size_t>(size), '\0');
}

// 1.5 seconds: 16,000 Hz in 20 bits, 2 channels (1 in 3 bits), 16 bits a sample (15 in 5 bits),
// 24,000 samples (0x5DC0) in 36 bits.
std::string flac(int samples = 24000) {
  return "fLaC" + bytes({0x80, 0, 0, 34}) + std::string(10, '\1') +
         bytes({0x03, 0xE8, 0x02, 0xF0, 0, 0, samples >> 8, samples & 255}) + std::string(16, '\0');
}

// First page: 27 bytes, one segment, the identification header of Vorbis with 44.1 kHz. The last
// page ends at sample 88,200 (0x15888).
std::string ogg(std::size_t between = 0) {
  return "OggS" + std::string(22, '\0') + bytes({1, 30, 1}) + "vorbis" +
         bytes({0, 0, 0, 0, 2, 0x44, 0xAC, 0, 0}) + std::string(14 + between, '\0') + "OggS" +
         bytes({0, 4, 0x88, 0x58, 1, 0, 0, 0, 0, 0}) + std::string(13, '\0');
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
    for (const std::string& head : {kFoundPng, kJpeg, kGif, kWebp, kLossless, kBmp}) {
      const PictureSize whole{640, 480, head != kGif && head != kBmp};
      CHECK(picture_size(head) == whole);
      for (std::size_t cut = 0; cut + 1 < head.size(); ++cut) {
        const auto size = picture_size(head.substr(0, cut));
        CHECK((!size || *size == whole));
      }
    }
    CHECK_FALSE(picture_size("<svg width='640'>"));
    CHECK_FALSE(picture_size("\x89PNG\r\n\x1A\n" + std::string(16, '\0')));  // no pixels
  }

  TEST_CASE("a path with braces stands for several") {
    using Paths = std::vector<std::string>;
    CHECK(brace_paths("a/{008..011}.tar") ==
          Paths{"a/008.tar", "a/009.tar", "a/010.tar", "a/011.tar"});
    CHECK(brace_paths("{x,y}-{0..1}.tar") == Paths{"x-0.tar", "x-1.tar", "y-0.tar", "y-1.tar"});
    CHECK(brace_paths("plain.tar") == Paths{"plain.tar"});
    for (const char* wrong : {"{5..1}.tar", "{a..c}.tar", "{..}.tar", "{0..99999999}.tar"})
      CHECK_THROWS_AS(brace_paths(wrong), InputError);
  }

  TEST_CASE("durations of audio files") {
    REQUIRE(sound_length(wav()));
    CHECK(sound_length(wav())->count() == doctest::Approx(1.5));
    CHECK(sound_length(wav().substr(0, 44 + 8000))->count() ==
          doctest::Approx(1));  // truncated: the length of what exists
    REQUIRE(sound_length(ogg()));
    CHECK(sound_length(ogg())->count() == doctest::Approx(2));
    REQUIRE(sound_length(flac()));
    CHECK(sound_length(flac())->count() == doctest::Approx(1.5));
    CHECK_FALSE(sound_length(flac(0)));  // 0: the length is unknown
    CHECK_FALSE(sound_length("ID3"));
    for (const std::string& whole : {wav(), flac(), ogg()})
      for (std::size_t cut = 0; cut < 64; ++cut) {
        const auto length = sound_length(whole.substr(0, cut));
        CHECK((!length || length->count() > 0));
      }
  }

  TEST_CASE("of an audio file only both ends are read") {
    const test::TempFolder folder;
    test::spill(folder / "a.wav", wav(1'000'000));
    test::spill(folder / "b.ogg", ogg(500'000));
    test::spill(folder / "c.flac", flac() + std::string(500'000, '\0'));
    for (const char* name : {"a.txt", "b.txt", "c.txt"}) test::spill(folder / name, "words");
    const Scanned all = scan(folder.path());
    REQUIRE(all.found.size() == 3);
    CHECK(all.found[0].sounds.at(0).length.count() == doctest::Approx(125));
    CHECK(all.found[1].sounds.at(0).length.count() == doctest::Approx(2));
    CHECK(all.found[2].sounds.at(0).length.count() == doctest::Approx(1.5));
  }

  TEST_CASE("a folder: files of the same name are a sample, in the order of names") {
    const test::TempFolder folder;
    test::spill(folder / "b.png", kFoundPng);
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
    REQUIRE(all.found[0].sounds.size() == 1);
    CHECK(all.found[0].sounds[0].length.count() == doctest::Approx(1.5));
    CHECK(all.found[0].sounds[0].file == FilePart{folder / "a.wav"});
    CHECK(all.found[1].conversation.answers() == "a dog");
    CHECK(all.left_out == std::vector<std::string>{"c: damaged or unknown image", "d: no text"});
    CHECK(scan(folder.path(), 1).found.size() == 1);
  }

  TEST_CASE("tar shards: long names, groups up to the first dot, errors with name and byte") {
    const test::TempFolder folder;
    const std::string longest = std::string(120, 'n') + "/7.png";
    const std::string shard =
        test::tar_member("x/6.seg.png", kFoundPng) + test::tar_member("x/6.txt", "six") +
        test::tar_member("././@LongLink", longest + '\0', 'L') +
        test::tar_member(longest.substr(0, 99), kJpeg) + test::tar_member("d/", "", '5') +
        test::tar_member(std::string(90, 'n') + "/7.json", R"({"caption": "seven"})");
    test::spill(folder / "00.tar", shard + std::string(1024, '\0'));
    test::spill(folder / "01.tar", test::tar_member("8.png", kFoundPng) +
                                       test::tar_member("8.flac", flac()) +
                                       test::tar_member("8.txt", "eight"));  // no end mark
    const Scanned all = scan(folder.path());
    REQUIRE(all.found.size() == 3);
    CHECK(all.found[0].name == "x/6");
    CHECK(all.found[0].conversation.answers() == "six");
    CHECK(all.found[1].conversation.answers() == "seven");  // a text of another name
    CHECK(all.found[1].pictures.empty());
    CHECK(all.found[2].conversation.answers() == "eight");
    // An image is a part of its shard.
    REQUIRE(all.found[0].pictures.size() == 1);
    CHECK(read_part(all.found[0].pictures[0].file) == kFoundPng);
    CHECK(read_part(all.found[2].pictures[0].file) == kFoundPng);
    REQUIRE(all.found[2].sounds.size() == 1);
    CHECK(read_part(all.found[2].sounds[0].file) == flac());
    FilePart beyond = all.found[2].pictures[0].file;
    beyond.offset = 1 << 20;
    CHECK_THROWS_WITH_AS(read_part(beyond), doctest::Contains("ends before byte"), InputError);
    CHECK(all.left_out == std::vector<std::string>{std::string(120, 'n') + "/7: no text"});
    const Scanned braced = scan(folder / "{00..01}.tar");
    CHECK(all.found.size() ==
          scan(folder / "00.tar").found.size() + scan(folder / "01.tar").found.size());
    CHECK_THROWS_WITH_AS(scan(folder / "{00..02}.tar"),
                         doctest::Contains("02.tar: is not a tar shard that exists"), InputError);
    CHECK_THROWS_WITH_AS(scan("pipe:cat 00.tar"), doctest::Contains("is a command"), InputError);
    test::spill(folder / "cut.tar", shard.substr(0, 520));
    CHECK_THROWS_WITH_AS(scan(folder / "cut.tar"), doctest::Contains("truncated"), InputError);
    test::spill(folder / "no.tar", std::string(600, 'x'));
    CHECK_THROWS_WITH_AS(scan(folder / "no.tar"), doctest::Contains("not a tar archive"),
                         InputError);
  }

  TEST_CASE("conversations: prompt and answer, images by path, in lines or one array") {
    const test::TempFolder folder;
    test::spill(folder / "p.png", kFoundPng);
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
                                   "sample 3: not a JSON object"});
    CHECK(array.found.size() == 2);
  }

  TEST_CASE("unknown speakers and parts are refused, paths in image_url are read") {
    const test::TempFolder folder;
    test::spill(folder / "p.png", kFoundPng);
    const std::string answer = R"({"role": "assistant", "content": "x"}]})";
    const auto messages = [&](const std::string& first) {
      return R"({"messages": [)" + first + ", " + answer + "\n";
    };
    test::spill(
        folder / "a.jsonl",
        messages(R"({"role": "customer", "content": "a"})") + messages(R"({"content": "a"})") +
            messages(R"({"role": "user", "content": [{"type": "video", "video": "v.mp4"}]})") +
            messages(
                R"({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}]})") +
            messages(
                R"({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "p.png"}}, {"type": "text", "text": "b"}]})") +
            messages(R"({"role": "tool", "content": "c"})"));
    const Scanned lines = scan(folder / "a.jsonl");
    CHECK(lines.left_out == std::vector<std::string>{
                                "sample 0, customer: a turn of an unknown role",
                                "sample 1: a turn without a role",
                                "sample 2, video: a part of an unknown type",
                                "sample 3, data:image/png;base64,AA: an image that is not a file"});
    REQUIRE(lines.found.size() == 2);
    CHECK(lines.found[0].pictures.size() == 1);
    CHECK(lines.found[0].conversation.turns[0].text == "<image>b");
    CHECK(lines.found[1].conversation.prompts() == "c");
  }

  TEST_CASE("conversations: audio by path, in keys or parts, and marks of parts") {
    const test::TempFolder folder;
    test::spill(folder / "p.wav", wav());
    test::spill(folder / "q.FLAC", flac());
    test::spill(folder / "damaged.ogg", "OggS");
    const auto with = [](const std::string& media) {
      return "{" + media + R"(, "messages": [{"role": "assistant", "content": "x"}]})" + "\n";
    };
    const std::string parts =
        R"({"messages": [{"role": "user", "content": [{"type": "audio", "audio": "q.FLAC"}, )"
        R"({"type": "text", "text": "what?"}]}, {"role": "assistant", "content": "x"}]})";
    test::spill(folder / "a.jsonl", with(R"("audio": "p.wav")") +
                                        with(R"("audios": ["p.wav", "q.FLAC"], "sound": "p.wav")") +
                                        parts + "\n" + with(R"("sounds": ["no\ne.wav"])") +
                                        with(R"("audio": "p.mp3")") +
                                        with(R"("audio": "damaged.ogg")"));
    const Scanned all = scan(folder / "a.jsonl");
    REQUIRE(all.found.size() == 3);
    CHECK(all.found[0].sounds.at(0).file == FilePart{folder / "p.wav"});
    CHECK(all.found[1].sounds.size() == 3);
    CHECK(all.found[1].sounds.at(1).length.count() == doctest::Approx(1.5));
    CHECK(all.found[2].sounds.size() == 1);
    CHECK(all.found[2].conversation.turns[0].text == "<audio>what?");
    CHECK(all.left_out ==
          std::vector<std::string>{"sample 3, " + (folder / "no?e.wav") + ": missing audio",
                                   "sample 4, " + (folder / "p.mp3") + ": damaged or unknown audio",
                                   "sample 5: damaged or unknown audio"});
  }

  TEST_CASE("Parquet is refused with what to do instead") {
    const test::TempFolder folder;
    test::spill(folder / "data/0.parquet", "PAR1");
    test::spill(folder / "data/README.txt", "of the folder");
    for (const std::string& path :
         {folder / "data/0.parquet", folder / "data/{0..1}.parquet", folder / "missing.PARQUET"})
      CHECK_THROWS_WITH_AS(
          scan(path),
          doctest::Contains((path +
                             ": is Parquet, which is not read (convert texts and paths of "
                             "images to JSON lines: python3 -c \"import pandas; "
                             "pandas.read_parquet('" +
                             path + "').to_json(")
                                .c_str()),
          InputError);
    CHECK_THROWS_WITH_AS(scan(folder / "data"), doctest::Contains("0.parquet: is Parquet"),
                         InputError);
    // A table beside images is no sample.
    test::spill(folder / "data/a.png", kFoundPng);
    test::spill(folder / "data/a.txt", "a cat");
    CHECK(scan(folder / "data").found.size() == 1);
  }

  TEST_CASE("a data set that does not exist is refused") {
    const test::TempFolder folder;
    CHECK_THROWS_AS(scan(folder / "missing"), InputError);
  }
}

}  // namespace polyphony
