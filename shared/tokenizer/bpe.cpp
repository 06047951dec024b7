#include "shared/tokenizer/bpe.h"

#include <queue>

#include "shared/tokenizer/letters.h"

namespace polyphony::tokenizing {
namespace {

// Pieces of more bytes are cut; up to so many symbols are merged by looking at all pairs each time.
constexpr std::size_t kLongPiece = 48, kFewSymbols = 40;

std::string fallback_token(unsigned byte) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  return std::string("<0x") + kDigits[byte >> 4] + kDigits[byte & 15] + ">";
}

}  // namespace

Bpe::Bpe(Vocabulary vocabulary, const std::vector<Merge>& merges, BpeOptions options,
         const Place& place)
    : vocabulary_(std::move(vocabulary)), options_(std::move(options)) {
  if (options_.unknown) {
    unknown_ = vocabulary_.id(*options_.unknown);
    if (unknown_ == kNoId)
      place.at("unk_token")
          .refuse("\"" + *options_.unknown + "\" must be in the vocabulary",
                  "add it to /model/vocab, or write null");
  }
  std::size_t slots = 2;
  while (slots < 2 * merges.size()) slots *= 2, --shift_;
  merges_.resize(slots);
  const Place list = place.at("merges");
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    const auto& [left, right] = merges[rank];
    const auto token = [&](const std::string& text) {
      const Id id = vocabulary_.id(text);
      if (id == kNoId)
        list.at(rank).refuse("\"" + text + "\" must be in the vocabulary",
                             "use the tokenizer.json as it was published");
      return id;
    };
    const Id left_id = token(left), right_id = token(right);
    if (right.size() < options_.prefix.size())
      list.at(rank).refuse("\"" + right + "\" must begin with the prefix of subwords",
                           "use the tokenizer.json as it was published");
    const Id made = token(left + right.substr(options_.prefix.size()));
    Entry& entry = merges_[place_of(
        pair(static_cast<std::uint32_t>(left_id), static_cast<std::uint32_t>(right_id)))];
    if (entry.key != kFree)
      list.at(rank).refuse("\"" + left + "\", \"" + right + "\" must be listed once (got twice)",
                           "remove one of them");
    entry = {pair(static_cast<std::uint32_t>(left_id), static_cast<std::uint32_t>(right_id)),
             static_cast<std::uint32_t>(rank), made};
    add_neighbors(vocabulary_.token(made));
  }
  for (std::size_t id = 0; id < vocabulary_.end_id(); ++id) {
    if (!vocabulary_.has(static_cast<Id>(id))) continue;
    const std::string& token = vocabulary_.token(static_cast<Id>(id));
    if (token.empty() || token.size() != utf8_size(token[0])) continue;
    std::size_t at = 0;
    const CodePoint code = next_code_point(token, at);
    if (code >= codes_.size()) codes_.resize(code + 1, kNoId);
    codes_[code] = static_cast<Id>(id);
  }
  for (unsigned byte = 0; byte < 256; ++byte) {
    bytes_[byte] = known(letters()[byte]);
    fallbacks_[byte] = vocabulary_.id(fallback_token(byte));
  }
}

std::size_t Bpe::place_of(std::uint64_t key) const {
  std::size_t at = (key * 0x9E3779B97F4A7C15ull) >> shift_;
  while (merges_[at].key != kFree && merges_[at].key != key) at = (at + 1) & (merges_.size() - 1);
  return at;
}

const Bpe::Entry& Bpe::merge_of(Id left, Id right) const {
  return merges_[place_of(
      pair(static_cast<std::uint32_t>(left), static_cast<std::uint32_t>(right)))];
}

void Bpe::add_neighbors(const std::string& token) {
  if (token.empty()) return;
  std::size_t at = 0;
  for (CodePoint left = next_code_point(token, at); at < token.size();) {
    const CodePoint right = next_code_point(token, at);
    neighbors_.insert(pair(left, right));
    left = right;
  }
}

bool Bpe::separable(CodePoint left, CodePoint right) const {
  return known(left) != kNoId && known(right) != kNoId && !neighbors_.contains(pair(left, right));
}

void Bpe::cut(std::string_view piece, bool bytes, std::vector<std::string_view>& parts) const {
  parts.clear();
  if (piece.size() > kLongPiece && options_.prefix.empty() && options_.suffix.empty() &&
      (!options_.ignore_merges || piece.size() > vocabulary_.longest())) {
    std::size_t begin = 0;
    CodePoint left = 0;
    for (std::size_t at = 0; at < piece.size();) {
      const std::size_t here = at;
      const CodePoint right =
          bytes ? letters()[static_cast<unsigned char>(piece[at++])] : next_code_point(piece, at);
      if (here > begin && separable(left, right)) {
        parts.push_back(piece.substr(begin, here - begin));
        begin = here;
      }
      left = right;
    }
    piece.remove_prefix(begin);
  }
  parts.push_back(piece);
}

bool Bpe::symbols_of_bytes(std::string_view piece, std::vector<Id>& symbols) const {
  if (!options_.prefix.empty() || !options_.suffix.empty()) return false;
  for (const char byte : piece) {
    const Id id = bytes_[static_cast<unsigned char>(byte)];
    if (id == kNoId) return false;
    symbols.push_back(id);
  }
  return true;
}

void Bpe::symbols_of(std::string_view piece, std::vector<Id>& symbols) const {
  const bool plain = options_.prefix.empty() && options_.suffix.empty();
  bool pending = false;  // an unknown symbol that is not yet appended
  std::string text;
  for (std::size_t at = 0; at < piece.size();) {
    const std::size_t begin = at;
    const CodePoint code = next_code_point(piece, at);
    Id id = kNoId;
    if (plain) {
      id = known(code);
    } else {
      text = begin == 0 ? "" : options_.prefix;
      text += piece.substr(begin, at - begin);
      if (at == piece.size()) text += options_.suffix;
      id = vocabulary_.id(text);
    }
    if (id != kNoId) {
      if (pending) symbols.push_back(unknown_);
      pending = false;
      symbols.push_back(id);
      continue;
    }
    if (options_.byte_fallback) {
      const std::string_view whole =
          plain ? piece.substr(begin, at - begin) : std::string_view(text);
      bool all = true;
      for (const char byte : whole)
        all = all && fallbacks_[static_cast<unsigned char>(byte)] != kNoId;
      if (all) {
        // A pending unknown symbol stays pending, as in `tokenizers`.
        for (const char byte : whole)
          symbols.push_back(fallbacks_[static_cast<unsigned char>(byte)]);
        continue;
      }
    }
    if (unknown_ == kNoId) continue;
    if (pending && !options_.fuse_unknown) symbols.push_back(unknown_);
    pending = true;
  }
  if (pending) symbols.push_back(unknown_);
}

void Bpe::encode(std::string_view piece, bool bytes, bool whole, std::vector<Id>& ids) const {
  std::string text;
  if (whole && options_.ignore_merges) {
    if (bytes) append_letters(text, piece);
    const Id id = vocabulary_.id(bytes ? std::string_view(text) : piece);
    if (id != kNoId) return ids.push_back(id);
  }
  std::vector<Id> symbols;
  symbols.reserve(piece.size());
  if (!bytes || !symbols_of_bytes(piece, symbols)) {
    symbols.clear();
    if (bytes && text.empty()) append_letters(text, piece);
    symbols_of(bytes ? std::string_view(text) : piece, symbols);
  }
  if (symbols.size() > kFewSymbols)
    merge_many(symbols);
  else
    merge_few(symbols);
  ids.insert(ids.end(), symbols.begin(), symbols.end());
}

void Bpe::merge_few(std::vector<Id>& symbols) const {
  if (symbols.size() < 2) return;
  std::array<Entry, kFewSymbols> next;  // by symbol: its merge with the one behind it
  std::size_t pairs = symbols.size() - 1;
  for (std::size_t i = 0; i < pairs; ++i) next[i] = merge_of(symbols[i], symbols[i + 1]);
  while (pairs > 0) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < pairs; ++i)
      if (next[i].rank < next[best].rank) best = i;
    if (next[best].rank == kNever) return;
    symbols[best] = next[best].made;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    for (std::size_t i = best; i + 1 < pairs; ++i) next[i] = next[i + 1];
    --pairs;
    if (best > 0) next[best - 1] = merge_of(symbols[best - 1], symbols[best]);
    if (best < pairs) next[best] = merge_of(symbols[best], symbols[best + 1]);
  }
}

void Bpe::merge_many(std::vector<Id>& symbols) const {
  constexpr std::uint32_t kEnd = ~std::uint32_t{0};
  const auto count = static_cast<std::uint32_t>(symbols.size());
  std::vector<std::uint32_t> before(count), behind(count);
  // (rank, position): the smallest is merged first. An entry is out of date if the pair at its
  // position has another rank by then.
  using Candidate = std::pair<std::uint32_t, std::uint32_t>;
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  const auto offer = [&](std::uint32_t left, std::uint32_t right) {
    const std::uint32_t rank = merge_of(symbols[left], symbols[right]).rank;
    if (rank != kNever) queue.emplace(rank, left);
  };
  for (std::uint32_t i = 0; i < count; ++i) {
    before[i] = i == 0 ? kEnd : i - 1;
    behind[i] = i + 1 == count ? kEnd : i + 1;
    if (i > 0) offer(i - 1, i);
  }
  while (!queue.empty()) {
    const auto [rank, left] = queue.top();
    queue.pop();
    if (symbols[left] == kNoId || behind[left] == kEnd) continue;
    const std::uint32_t right = behind[left];
    const Entry& merge = merge_of(symbols[left], symbols[right]);
    if (merge.rank != rank) continue;
    symbols[left] = merge.made;
    symbols[right] = kNoId;
    behind[left] = behind[right];
    if (behind[left] != kEnd) {
      before[behind[left]] = left;
      offer(left, behind[left]);
    }
    if (before[left] != kEnd) offer(before[left], left);
  }
  std::erase(symbols, kNoId);
}

}  // namespace polyphony::tokenizing
