// How many tokens a text is: by a Hugging Face tokenizer.json (byte-level BPE: GPT-2's, Llama 3's, Qwen's, …), or by bytes a token.
//   Words are cut as GPT-2's pattern does, with runs of digits of at most `digits`; letters beyond ASCII count as letters,
//   so that texts with other punctuation may differ by a token here and there.
// Source: Sennrich et al., arXiv 1508.07909, algorithm 1; bytes as letters, GPT-2 (Radford et al., 2019).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace polyphony::sim {

class Tokenizer {
 public:
  // Four bytes a token: English text (own rule of thumb; Llama 3's paper counts 3.17 to 3.94 letters).
  explicit Tokenizer(double bytes_a_token = 4) : bytes_(bytes_a_token) {}
  // Errors: InputError naming the file: no JSON, another kind than byte-level BPE.
  static Tokenizer from_file(const std::string& path);

  // 0 for an empty text alone.
  std::int64_t count(const std::string& text) const;

 private:
  std::int64_t count_word(const std::string& word) const;

  double bytes_ = 4;
  int digits_ = 3;
  std::unordered_map<std::string, int>
      ranks_;  // "left right", in bytes as letters; empty: by bytes
  mutable std::unordered_map<std::string, std::int64_t> known_;
};

// Where GPT-2's pattern cuts.
std::vector<std::string> words_of(const std::string& text, int digits);

}  // namespace polyphony::sim
