#include "sim/datasets/tokenizer.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "shared/error.h"
#include "shared/files/whole.h"

namespace polyphony::sim {
namespace {

using Json = nlohmann::json;

std::string utf8(unsigned code) {
  if (code < 0x80) return {static_cast<char>(code)};
  return {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 0x3F))};
}

// Returns the letter that stands for each byte: the byte itself if it is printable, else a code
// from 256 on.
const std::array<std::string, 256>& letters() {
  static const std::array<std::string, 256> all = [] {
    std::array<std::string, 256> made;
    unsigned next = 256;
    for (unsigned b = 0; b < 256; ++b) {
      const bool printed = (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
      made[b] = utf8(printed ? b : next++);
    }
    return made;
  }();
  return all;
}

enum class Class { letter, digit, space, other };
Class class_of(char c) {
  const auto byte = static_cast<unsigned char>(c);
  if (byte >= 0x80 || std::isalpha(byte)) return Class::letter;
  if (std::isdigit(byte)) return Class::digit;
  return std::isspace(byte) ? Class::space : Class::other;
}

// Returns the most digits per word: Llama 3 and GPT-4 split digits by threes, Qwen one by one,
// GPT-2 does not split them.
int digits_of(const std::string& pattern) {
  if (pattern.find("\\p{N}{1,3}") != std::string::npos) return 3;
  return pattern.find("\\p{N}+") != std::string::npos || pattern.empty() ? 1 << 20 : 1;
}

}  // namespace

std::vector<std::string> words_of(const std::string& text, int digits) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && class_of(text[end]) == Class::space) ++end;
    if (end - at > 1 ||
        (end == text.size() && end > at)) {  // all blanks except the last, which joins the word
      const std::size_t keep = end < text.size() && text[end - 1] == ' ' ? 1 : 0;
      words.push_back(text.substr(at, end - keep - at));
      at = end - keep;
      continue;
    }
    if (end > at && text[at] != ' ') {  // a line break is a word
      words.push_back(text.substr(at, 1));
      at = end;
      continue;
    }
    const Class kind = class_of(text[end]);
    const std::size_t first = end;
    while (end < text.size() && class_of(text[end]) == kind &&
           (kind != Class::digit || end - first < static_cast<std::size_t>(digits)))
      ++end;
    words.push_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

Tokenizer Tokenizer::from_file(const std::string& path) {
  const Json json = Json::parse(read_records(path), nullptr, false);
  const auto refuse = [&](const std::string& what) -> InputError {
    return {path, "/model", what,
            "give the tokenizer.json of a byte-level BPE tokenizer, or omit it"};
  };
  if (!json.is_object() || !json.contains("model") || !json["model"].contains("merges"))
    throw refuse("has no \"merges\"");
  const std::string whole = json.value("pre_tokenizer", Json()).dump();
  if (whole.find("ByteLevel") == std::string::npos) throw refuse("is not byte-level");
  Tokenizer made;
  std::string pattern;
  if (const std::size_t at = whole.find("\"Regex\":\""); at != std::string::npos)
    pattern = Json::parse(whole.substr(at + 8, whole.find("\"}", at) - at - 7), nullptr, false)
                  .get<std::string>();
  made.digits_ = digits_of(pattern);
  int rank = 0;
  for (const Json& merge : json["model"]["merges"]) {
    if (!merge.is_string() && !(merge.is_array() && merge.size() == 2))
      throw refuse("has a merge that is not a pair");
    made.ranks_.emplace(merge.is_string()
                            ? merge.get<std::string>()
                            : merge[0].get<std::string>() + " " + merge[1].get<std::string>(),
                        rank++);
  }
  return made;
}

std::int64_t Tokenizer::count_word(const std::string& word) const {
  const auto [known, fresh] = known_.try_emplace(word, 0);
  if (!fresh) return known->second;
  std::vector<std::string> parts;
  for (const char c : word) parts.push_back(letters()[static_cast<unsigned char>(c)]);
  while (parts.size() > 1) {
    int best = std::numeric_limits<int>::max();
    std::size_t place = 0;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto found = ranks_.find(parts[i] + " " + parts[i + 1]);
      if (found == ranks_.end() || found->second >= best) continue;
      best = found->second;
      place = i;
    }
    if (best == std::numeric_limits<int>::max()) break;
    parts[place] += parts[place + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(place) + 1);
  }
  return known->second = static_cast<std::int64_t>(parts.size());
}

std::int64_t Tokenizer::count(const std::string& text) const {
  if (ranks_.empty())
    return static_cast<std::int64_t>(std::ceil(static_cast<double>(text.size()) / bytes_));
  std::int64_t sum = 0;
  for (const std::string& word : words_of(text, digits_)) sum += count_word(word);
  return sum;
}

}  // namespace polyphony::sim
