#include "shared/tokenizer/unigram.h"

#include <algorithm>
#include <limits>

#include "shared/tokenizer/unicode.h"

namespace polyphony::tokenizing {
namespace {

constexpr double kUnknownPenalty = 10;

std::vector<std::pair<std::string, Id>> numbered(const std::vector<Unigram::Piece>& pieces) {
  std::vector<std::pair<std::string, Id>> tokens;
  for (const auto& [token, score] : pieces)
    tokens.emplace_back(token, static_cast<Id>(tokens.size()));
  return tokens;
}

}  // namespace

Unigram::Unigram(const std::vector<Piece>& pieces, Id unknown, bool byte_fallback, Place place)
    : vocabulary_(numbered(pieces)), unknown_(unknown), place_(std::move(place)) {
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [token, score] : pieces) {
    if (!token.empty()) trie_.add(token, static_cast<Id>(scores_.size()));
    scores_.push_back(score);
    least = std::min(least, score);
  }
  unknown_score_ = least - kUnknownPenalty;
  fallbacks_.fill(kNoId);
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  if (byte_fallback)
    for (std::size_t byte = 0; byte < 256; ++byte)
      fallbacks_[byte] =
          vocabulary_.id(std::string("<0x") + kDigits[byte >> 4] + kDigits[byte & 15] + ">");
}

void Unigram::refuse() const {
  place_.at("unk_id").refuse("a text has a character that the vocabulary lacks",
                             "give the id of a token for unknown characters");
}

void Unigram::append(std::string_view token, std::vector<Id>& ids) const {
  const Id id = vocabulary_.id(token);
  if (id != kNoId) return ids.push_back(id);
  if (std::all_of(token.begin(), token.end(), [&](char byte) {
        return fallbacks_[static_cast<unsigned char>(byte)] != kNoId;
      })) {
    for (const char byte : token) ids.push_back(fallbacks_[static_cast<unsigned char>(byte)]);
    return;
  }
  if (unknown_ == kNoId) refuse();
  ids.push_back(unknown_);
}

void Unigram::encode(std::string_view text, std::vector<Id>& ids) const {
  constexpr std::size_t kNowhere = ~std::size_t{0};
  struct Node {  // the best way to write the text up to here
    double score = 0;
    std::size_t begin = kNowhere;  // of its last token
    Id id = kNoId;
  };
  std::vector<Node> nodes(text.size() + 1);
  for (std::size_t at = 0; at < text.size();) {
    const double here = nodes[at].score;
    const std::size_t character = utf8_size(text[at]);
    bool covered = false;
    const auto offer = [&](std::size_t size, double score, Id id) {
      Node& node = nodes[at + size];
      if (node.begin != kNowhere && score + here <= node.score) return;
      node = {score + here, at, id};
    };
    trie_.prefixes(text.substr(at), [&](std::size_t size, Id id) {
      offer(size, scores_[static_cast<std::size_t>(id)], id);
      covered = covered || size == character;
    });
    if (!covered) {
      if (unknown_ == kNoId) refuse();
      offer(character, unknown_score_, unknown_);
    }
    at += character;
  }
  std::vector<std::string_view> tokens;  // from the last one
  bool unknown = false;                  // the last one is of unknown characters
  for (std::size_t end = text.size(); end > 0;) {
    const Node& node = nodes[end];
    const std::string_view token = text.substr(node.begin, end - node.begin);
    const bool also = node.id == unknown_;
    if (also && unknown)
      tokens.back() = text.substr(node.begin, token.size() + tokens.back().size());
    else
      tokens.push_back(token);
    unknown = also;
    end = node.begin;
  }
  for (auto token = tokens.rbegin(); token != tokens.rend(); ++token) append(*token, ids);
}

}  // namespace polyphony::tokenizing
