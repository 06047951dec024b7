// Files of token ids: every type of ids, samples that cross documents, and damage of each kind.
#include "shared/datasets/token_file.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "shared/error.h"
#include "tests/shared/support/token_files.h"

namespace polyphony {
namespace {

using test::Documents;
using test::index_of;
using test::spill;
using test::TempFolder;
using test::TokenIndex;
using test::write_tokens;

using Ids = std::vector<std::int64_t>;

// Three documents, one of them empty, with eleven tokens in all.
const Documents kDocuments{{1, 2, 3, 4}, {}, {5, 6, 7, 8, 9, 10, 11}};

std::string refusal(const std::string& name) {
  try {
    const TokenFile file(name, "/data/source/tokens in small.json");
    file.check_sequences();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_SUITE("token files") {
  TEST_CASE("ids of every type, by the name of the pair or of either file") {
    const TempFolder folder;
    const std::string name = folder / "a_text_document";
    const auto check = [&](const std::string& given) {
      const TokenFile file(given, "test");
      file.check_sequences();
      CHECK((file.tokens() == 11 && file.sequences() == 3));
      CHECK(file.read(0, 11, 100) == Ids{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
      CHECK(file.read(3, 2, 100) == Ids{4, 5});
      CHECK(file.read(11, 0, 100).empty());
    };
    write_tokens<std::uint16_t>(name, kDocuments, 8);
    for (const char* ending : {"", ".bin", ".idx"}) check(name + ending);
    write_tokens<std::uint8_t>(name, kDocuments, 1);
    check(name);
    write_tokens<std::int8_t>(name, kDocuments, 2);
    check(name);
    write_tokens<std::int16_t>(name, kDocuments, 3);
    check(name);
    write_tokens<std::int32_t>(name, kDocuments, 4);
    check(name);
    write_tokens<std::int64_t>(name, kDocuments, 5);
    check(name);
  }

  TEST_CASE("documents are joined and cut; the last sample has the rest") {
    const TempFolder folder;
    write_tokens(folder / "a", kDocuments);
    const TokenFile file(folder / "a", "test");
    // Ten tokens have a next one: 4 + 4 + 2.
    const SampleList samples = file.samples(4);
    REQUIRE(samples.size() == 3);
    CHECK(samples[1] == Sample{1, {{Modality::text, 4, 4}}});
    CHECK(samples[2] == Sample{2, {{Modality::text, 2, 2}}});
    CHECK(file.samples(5).size() == 2);
    CHECK(file.samples(100) == SampleList({{0, {{Modality::text, 10, 10}}}}));
    write_tokens(folder / "b", {{7}});
    CHECK_THROWS_WITH_AS(
        TokenFile(folder / "b", "test").samples(4),
        (folder / "b.bin: must have at least two tokens (use a longer text)").c_str(), InputError);
  }

  TEST_CASE("an id outside the vocabulary is named with its place, when it is read") {
    const TempFolder folder;
    write_tokens<std::int32_t>(folder / "a", {{1, 2, 3}, {4, 500, -6}}, 4);
    const TokenFile file(folder / "a", "test");
    CHECK(file.read(0, 4, 5) == Ids{1, 2, 3, 4});
    CHECK_THROWS_WITH_AS(
        file.read(2, 3, 500),
        (folder / "a.bin: token 4 (sequence 1, byte 16, counted from 0) has the id 500, but ids "
                  "must be from 0 to 499, the language module's vocabulary (encode the texts with "
                  "the model's tokenizer)")
            .c_str(),
        InputError);
    CHECK_THROWS_WITH_AS(file.read(5, 1, 501), doctest::Contains("token 5 (sequence 1, byte 20"),
                         InputError);
    CHECK_THROWS_WITH_AS(file.read(5, 1, 501), doctest::Contains("has the id -6"), InputError);
  }

  TEST_CASE("damaged files are refused with what is wrong and how to repair it") {
    const TempFolder folder;
    const std::string name = folder / "a", idx = name + ".idx", bin = name + ".bin";
    const TokenIndex whole = index_of(kDocuments, 8, 2);
    const std::string again = " (copy both files again, or write them again)";
    const auto refused = [&](const std::string& bytes) {
      spill(idx, bytes);
      return refusal(name);
    };
    const auto damaged = [&](const auto& change) {
      TokenIndex index = whole;
      change(index);
      return refused(index.bytes());
    };
    CHECK(refusal(name) == idx +
                               ": cannot be read: No such file or directory (check "
                               "/data/source/tokens in small.json: NAME of NAME.bin and NAME.idx)");
    spill(bin, test::ids_of<std::uint16_t>(kDocuments));
    CHECK(refused(whole.bytes()).empty());
    // 34 bytes, 3 · 12 of sequences, 4 · 8 of boundaries.
    REQUIRE(whole.bytes().size() == 102);
    CHECK(refused("") == idx +
                             ": is no index of a Megatron data set: it must begin with "
                             "\"MMIDIDX\" and two zero bytes" +
                             again);
    CHECK(damaged([](TokenIndex& index) { index.magic[0] = 'X'; }).find("is no index") !=
          std::string::npos);
    CHECK(refused(whole.bytes().substr(0, 20)) == idx + ": is truncated: it has 20 bytes" + again);
    CHECK(refused(whole.bytes().substr(0, 60)) ==
          idx +
              ": is truncated: it has 60 bytes, too few for the 3 sequences and 4 document "
              "boundaries that its header states" +
              again);
    CHECK(damaged([](TokenIndex& index) { index.version = 2; }) ==
          idx + ": must have version 1 (got 2)" + again);
    for (const int type : {0, 6, 7, 9, 255})
      CHECK(damaged([&](TokenIndex& index) { index.type = static_cast<std::uint8_t>(type); }) ==
            idx + ": has ids of type " + std::to_string(type) +
                ", but it must be 1 to 5 (uint8, int8, int16, int32, int64) or 8 (uint16)" + again);
    CHECK(refused(whole.bytes() + std::string(3, '\0')) ==
          idx +
              ": has a mode for each sequence, as data sets of texts and images have (name a "
              "data set of texts alone)");
    CHECK(refused(whole.bytes() + "x") ==
          idx +
              ": has 103 bytes, but the 3 sequences and 4 document boundaries that its header "
              "states take 102" +
              again);
    std::string huge = whole.bytes();
    huge.replace(18, 8, std::string(8, '\xff'));
    CHECK(refused(huge).find("too few for the 18446744073709551615 sequences") !=
          std::string::npos);
    CHECK(damaged([](TokenIndex& index) { index.begins[2] = 24; }) ==
          idx + ": sequence 2 (counted from 0) begins at byte 24 of a.bin, which has 22 bytes" +
              again);
    CHECK(damaged([](TokenIndex& index) { index.lengths[2] = 6; }) ==
          bin + ": has 22 bytes, but the sequences of a.idx end at byte 20" + again);
    CHECK(damaged([](TokenIndex& index) { index.lengths[0] = 3; }) ==
          idx +
              ": sequence 1 (counted from 0) begins at byte 8 of a.bin, but those before it end "
              "at byte 6" +
              again);
    CHECK(damaged([](TokenIndex& index) { index.lengths[1] = -1; }) ==
          idx + ": sequence 1 (counted from 0) has a length of -1" + again);
    CHECK(damaged([](TokenIndex& index) { index.lengths[0] = 100; }) ==
          idx + ": sequence 0 (counted from 0) ends at byte 200 of a.bin, which has 22 bytes" +
              again);
    CHECK(damaged([](TokenIndex& index) { index.boundaries[3] = 4; }) ==
          idx + ": document boundary 3 (counted from 0) is sequence 4, but must be from 2 to 3" +
              again);
    CHECK(damaged([](TokenIndex& index) {
            index.lengths.clear();
            index.begins.clear();
          }) == idx + ": has no sequences" + again);
    // Ids of three bytes do not exist: 11 ids of 2 bytes are no whole number of 4.
    CHECK(damaged([](TokenIndex& index) {
            index.type = 4;
            index.lengths = {4, 0, 0};
            index.begins = {0, 16, 22};
          }) == bin +
                    ": has 22 bytes, which is no multiple of the 4 bytes that an id takes by "
                    "a.idx" +
                    again);
    spill(idx, whole.bytes());
    spill(bin, "");
    CHECK(refusal(name).find("begins at byte 8 of a.bin, which has 0 bytes") != std::string::npos);
    std::filesystem::remove(bin);
    std::filesystem::create_directory(bin);
    CHECK(refusal(name).find(bin + ": cannot be read: it is not a regular file") == 0);
  }
}

}  // namespace polyphony
