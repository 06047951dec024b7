#include "shared/tokenizer/word_piece.h"

#include "shared/tokenizer/unicode.h"

namespace polyphony::tokenizing {

WordPiece::WordPiece(Vocabulary vocabulary, const std::string& unknown, std::string prefix,
                     std::size_t most, const Place& place)
    : vocabulary_(std::move(vocabulary)),
      unknown_(vocabulary_.id(unknown)),
      prefix_(std::move(prefix)),
      most_(most) {
  if (unknown_ == kNoId)
    place.at("unk_token")
        .refuse("\"" + unknown + "\" must be in the vocabulary", "add it to /model/vocab");
}

void WordPiece::encode(std::string_view word, std::vector<Id>& ids) const {
  std::size_t characters = 0;
  for (std::size_t at = 0; at < word.size(); at += utf8_size(word[at])) ++characters;
  if (characters > most_) return ids.push_back(unknown_);
  const std::size_t before = ids.size();
  std::string text;
  for (std::size_t begin = 0; begin < word.size();) {
    text = begin == 0 ? "" : prefix_;
    const std::size_t prefix = text.size();
    // No token is longer than the longest one.
    std::size_t end = word.size();
    if (end - begin > vocabulary_.longest()) {
      end = begin + vocabulary_.longest();
      while (end > begin && (static_cast<unsigned char>(word[end]) & 0xC0) == 0x80) --end;
    }
    text += word.substr(begin, end - begin);
    Id id = kNoId;
    while (end > begin && (id = vocabulary_.id(text)) == kNoId) {
      end = code_point_before(word, end);
      text.resize(prefix + end - begin);
    }
    if (id == kNoId) {
      ids.resize(before);
      return ids.push_back(unknown_);
    }
    ids.push_back(id);
    begin = end;
  }
}

}  // namespace polyphony::tokenizing
