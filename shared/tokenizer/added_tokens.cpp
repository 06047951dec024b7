#include "shared/tokenizer/added_tokens.h"

#include <algorithm>

namespace polyphony::tokenizing {
namespace {

bool is_word_at(std::string_view text, std::size_t at) {
  static const Pattern word =
      Pattern::regex("[\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\p{Join_Control}]", {"", ""});
  return word.matches_at(text, at);
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens,
                         const std::vector<NormalizerStep>& normalizer, const Place& place)
    : tokens_(std::move(tokens)) {
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    const AddedToken& token = tokens_[i];
    NormalText text{token.content, 0};
    if (token.normalized) normalize(normalizer, text);
    written_.push_back(text.text);
    if (!by_content_.emplace(token.content, i).second || !by_id_.emplace(token.id, i).second)
      place.at(i).refuse("\"" + token.content + "\" must be listed once (got twice)",
                         "remove one of them");
    Finder& finder = finders_[token.normalized ? 1 : 0];
    if (text.text.empty() || finder.trie.longest(text.text).size == text.text.size())
      place.at(i).refuse("\"" + token.content + "\", once normalized, must differ from the others",
                         "remove it, or write \"normalized\": false");
    finder.trie.add(text.text, static_cast<std::int32_t>(i));
    finder.starts[static_cast<unsigned char>(text.text[0])] = true;
    finder.none = false;
  }
}

Id AddedTokens::id(const std::string& content) const {
  const auto found = by_content_.find(content);
  return found == by_content_.end() ? kNoId : tokens_[found->second].id;
}

const AddedToken* AddedTokens::token(Id id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &tokens_[found->second];
}

bool AddedTokens::is_special(const std::string& content) const {
  const auto found = by_content_.find(content);
  return found != by_content_.end() && tokens_[found->second].special;
}

Id AddedTokens::largest_id() const {
  Id most = kNoId;
  for (const AddedToken& token : tokens_) most = std::max(most, token.id);
  return most;
}

const std::string& AddedTokens::written(const AddedToken& token) const {
  return written_[static_cast<std::size_t>(&token - tokens_.data())];
}

void AddedTokens::split(const Piece& piece, bool normalized, std::vector<Piece>& pieces) const {
  const std::string_view text = piece.text;
  const Finder& finder = finders_[normalized ? 1 : 0];
  const auto put = [&](std::size_t begin, std::size_t end) {
    if (begin < end) pieces.push_back(piece.part(begin, end));
  };
  if (finder.none) return put(0, text.size());
  std::size_t done = 0;
  for (std::size_t at = 0; at < text.size();) {
    if (!finder.starts[static_cast<unsigned char>(text[at])]) {
      ++at;
      continue;
    }
    const ByteTrie::Found found = finder.trie.longest(text.substr(at));
    if (found.size == 0) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens_[static_cast<std::size_t>(found.value)];
    std::size_t begin = at, end = at + found.size;
    at = end;
    if (token.single_word && ((begin > 0 && is_word_at(text, code_point_before(text, begin))) ||
                              (end < text.size() && is_word_at(text, end))))
      continue;
    while (token.lstrip && begin > done) {
      const std::size_t before = code_point_before(text, begin);
      std::size_t i = before;
      if (!is_white_space(next_code_point(text, i))) break;
      begin = before;
    }
    for (std::size_t i = end; token.rstrip && end < text.size(); end = i)
      if (!is_white_space(next_code_point(text, i))) break;
    if (done < begin) put(done, begin);
    pieces.push_back({text.substr(begin, end - begin), 0, token.id});
    done = end;
  }
  put(done, text.size());
}

}  // namespace polyphony::tokenizing
