// Byte-pair encoding: of all adjacent pairs of symbols, the one that stands first in the list of
// merges becomes one symbol, of equal ones the leftmost, until no pair is in the list.
//   A long piece is cut where no token contains the two characters side by side: the parts cannot
//   affect each other, so the result is the same.
// Source: Sennrich et al., arXiv 1508.07909, algorithm 1; options as in Hugging Face's
// `tokenizers`.
#pragma once

#include <array>
#include <optional>
#include <unordered_set>

#include "shared/tokenizer/place.h"
#include "shared/tokenizer/unicode.h"
#include "shared/tokenizer/vocabulary.h"

namespace polyphony::tokenizing {

struct BpeOptions {
  std::optional<std::string> unknown{};  // without one, unknown characters are dropped
  std::string prefix{};                  // of all symbols but the first of a piece
  std::string suffix{};                  // of the last symbol of a piece
  bool fuse_unknown = false;
  bool byte_fallback = false;  // unknown characters as tokens <0x00> to <0xFF>
  bool ignore_merges = false;  // a piece that is a token stays whole
};

class Bpe {
 public:
  using Merge = std::pair<std::string, std::string>;
  // Throws InputError at `place` if a merge names or makes a token that is not in the vocabulary,
  // or is given twice.
  Bpe(Vocabulary vocabulary, const std::vector<Merge>& merges, BpeOptions options,
      const Place& place);

  const Vocabulary& vocabulary() const { return vocabulary_; }
  const BpeOptions& options() const { return options_; }

  // Sets `parts` to the parts of a piece that can be encoded separately. With `bytes`, the
  // vocabulary writes bytes as letters.
  void cut(std::string_view piece, bool bytes, std::vector<std::string_view>& parts) const;
  // Appends the ids of a piece, or of a part that cut() returned (`whole` is then false).
  void encode(std::string_view piece, bool bytes, bool whole, std::vector<Id>& ids) const;

 private:
  struct Entry {
    std::uint64_t key = kFree;
    std::uint32_t rank = kNever;
    Id made = kNoId;
  };
  static constexpr std::uint64_t kFree = ~std::uint64_t{0};
  static constexpr std::uint32_t kNever = ~std::uint32_t{0};

  static std::uint64_t pair(std::uint32_t left, std::uint32_t right) {
    return std::uint64_t{left} << 32 | right;
  }
  const Entry& merge_of(Id left, Id right) const;
  std::size_t place_of(std::uint64_t key) const;
  void add_neighbors(const std::string& token);
  Id known(CodePoint code) const { return code < codes_.size() ? codes_[code] : kNoId; }
  bool separable(CodePoint left, CodePoint right) const;
  void symbols_of(std::string_view piece, std::vector<Id>& symbols) const;
  bool symbols_of_bytes(std::string_view piece, std::vector<Id>& symbols) const;
  void merge_few(std::vector<Id>& symbols) const;
  void merge_many(std::vector<Id>& symbols) const;

  Vocabulary vocabulary_;
  BpeOptions options_;
  Id unknown_ = kNoId;
  unsigned shift_ = 63;
  std::vector<Entry> merges_;                    // open addressing
  std::vector<Id> codes_;                        // by code point: its token
  std::array<Id, 256> bytes_{};                  // by byte: the token of its letter
  std::array<Id, 256> fallbacks_{};              // by byte: the token <0x..>
  std::unordered_set<std::uint64_t> neighbors_;  // code points side by side in a merged token
};

}  // namespace polyphony::tokenizing
