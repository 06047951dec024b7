// Counts the tokens of a text: with a Hugging Face tokenizer.json (byte-level BPE, as in GPT-2,
// Llama 3, Qwen, …), or by an average number of bytes per token.
//   Text is split into words as by GPT-2's pattern, with at most `digits` digits per word. Bytes
//   beyond ASCII count as letters, so texts with non-ASCII punctuation may differ by a few tokens.
// Source: Sennrich et al., arXiv 1508.07909, algorithm 1; bytes as letters: GPT-2 (Radford et al.,
// 2019).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace polyphony::sim {

class Tokenizer {
 public:
  // Counts four bytes per token: English text (our rule of thumb; Llama 3's paper has 3.17 to 3.94
  // letters per token).
  explicit Tokenizer(double bytes_a_token = 4) : bytes_(bytes_a_token) {}
  // Reads a tokenizer.json. Throws InputError naming the file if it is not JSON or not byte-level
  // BPE.
  static Tokenizer from_file(const std::string& path);

  // Returns the number of tokens; 0 only for an empty text.
  std::int64_t count(const std::string& text) const;

 private:
  std::int64_t count_word(const std::string& word) const;

  double bytes_ = 4;
  int digits_ = 3;
  std::unordered_map<std::string, int>
      ranks_;  // "left right", with bytes as letters; empty: count by bytes
  mutable std::unordered_map<std::string, std::int64_t> known_;
};

// Splits a text into words where GPT-2's pattern does.
std::vector<std::string> words_of(const std::string& text, int digits);

}  // namespace polyphony::sim
