#include "shared/tokenizer/tokenizer.h"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <mutex>

#include "shared/error.h"
#include "shared/files/whole.h"
#include "shared/tokenizer/letters.h"
#include "shared/tokenizer/read_parts_json.h"
#include "shared/tokenizer/unicode.h"
#include "shared/tokenizer/word_cache.h"

namespace polyphony {

using namespace tokenizing;

namespace {

// What one call of encode() works with.
struct Workspace {
  WordCache cache;
  std::vector<Piece> pieces, before;
  std::deque<std::string> made;  // texts that pieces point to
  std::vector<std::string_view> parts;
  std::string letters;
};

// The last step writes bytes as letters; the model can do that for pieces that it does not know.
bool take_letters(std::vector<PreTokenizerStep>& steps) {
  ByteLevel* const last = steps.empty() ? nullptr : std::get_if<ByteLevel>(&steps.back());
  if (!last) return false;
  last->letters = false;
  return true;
}

}  // namespace

struct Tokenizer::Parts {
  FileParts file;
  bool bytes;  // the vocabulary writes bytes as letters
  mutable std::mutex mutex;
  mutable std::vector<std::unique_ptr<Workspace>> idle;

  explicit Parts(FileParts read) : file(std::move(read)), bytes(take_letters(file.pre_tokenizer)) {}

  std::unique_ptr<Workspace> borrow() const {
    const std::lock_guard lock(mutex);
    if (idle.empty()) return std::make_unique<Workspace>();
    std::unique_ptr<Workspace> one = std::move(idle.back());
    idle.pop_back();
    return one;
  }
  void give_back(std::unique_ptr<Workspace> one) const {
    one->made.clear();
    const std::lock_guard lock(mutex);
    idle.push_back(std::move(one));
  }

  void split(std::string_view text, Workspace& work) const;
  void encode_piece(std::string_view piece, Workspace& work, std::vector<Id>& ids) const;
};

void Tokenizer::Parts::split(std::string_view text, Workspace& work) const {
  work.before.clear();
  work.pieces.clear();
  const std::size_t head = text.empty() ? 0 : utf8_size(text[0]);
  file.added.split({text, head, kNoId}, false, work.before);
  for (const Piece& piece : work.before) {
    if (piece.id != kNoId || (file.normalizer.empty() && !file.added.any(true))) {
      work.pieces.push_back(piece);
      continue;
    }
    Piece normal = piece;
    if (!file.normalizer.empty()) {
      NormalText changed{std::string(piece.text), piece.head};
      normalize(file.normalizer, changed);
      normal = {work.made.emplace_back(std::move(changed.text)), changed.head, kNoId};
    }
    file.added.split(normal, true, work.pieces);
  }
  pre_tokenize(file.pre_tokenizer, work.pieces, work.made);
}

void Tokenizer::Parts::encode_piece(std::string_view piece, Workspace& work,
                                    std::vector<Id>& ids) const {
  const auto remembered = [&](std::string_view part, bool whole, const auto& encode) {
    if (part.size() <= WordCache::kLongest && work.cache.find(part, whole, ids)) return;
    const std::size_t first = ids.size();
    encode();
    work.cache.add(part, whole, ids, first);
  };
  if (const Bpe* const bpe = std::get_if<Bpe>(&file.model)) {
    bpe->cut(piece, bytes, work.parts);
    const bool whole = work.parts.size() == 1;
    for (const std::string_view part : work.parts)
      remembered(part, whole, [&] { bpe->encode(part, bytes, whole, ids); });
    return;
  }
  remembered(piece, true, [&] {
    work.letters.clear();
    if (bytes) append_letters(work.letters, piece);
    const std::string_view text = bytes ? std::string_view(work.letters) : piece;
    if (const Unigram* const unigram = std::get_if<Unigram>(&file.model))
      unigram->encode(text, ids);
    else
      std::get<WordPiece>(file.model).encode(text, ids);
  });
}

Tokenizer Tokenizer::load(const std::string& path) {
  if (path.ends_with(".model"))
    throw InputError(path, "", "SentencePiece's .model files are not read",
                     "give tokenizer.json; in Python, transformers.AutoTokenizer.from_pretrained("
                     "FOLDER).save_pretrained(FOLDER) writes it");
  if (std::filesystem::is_directory(path))
    throw InputError(path, "", "is a folder, not a file", "name the tokenizer.json in it");
  return parse(read_file(path), path);
}

Tokenizer Tokenizer::parse(const std::string& text, const std::string& file) {
  return Tokenizer(std::make_shared<const Parts>(read_tokenizer(text, file)));
}

void Tokenizer::append_ids(std::string_view text, std::vector<std::int32_t>& ids,
                           std::vector<Seam>* seams) const {
  if (const auto at = first_invalid_byte(text))
    throw InputError("", "", "a text must be valid UTF-8 (got byte " + std::to_string(*at) + ")",
                     "convert it to UTF-8");
  std::unique_ptr<Workspace> work = parts_->borrow();
  parts_->split(text, *work);
  // What is found in the text itself is in `before`, and a piece of the same bytes among the
  // pieces.
  auto raw = work->before.begin();
  for (const Piece& piece : work->pieces) {
    if (piece.id == kNoId) {
      parts_->encode_piece(piece.text, *work, ids);
      continue;
    }
    while (raw != work->before.end() && raw->id == kNoId) ++raw;
    if (seams && raw != work->before.end() && raw->text.data() == piece.text.data()) {
      const auto begin = static_cast<std::size_t>(raw->text.data() - text.data());
      seams->push_back({begin, begin + raw->text.size(), ids.size()});
      ++raw;
    }
    ids.push_back(piece.id);
  }
  parts_->give_back(std::move(work));
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text, bool add_special) const {
  std::vector<std::int32_t> ids;
  const Frame& frame = parts_->file.frame;
  if (add_special) ids = frame.before;
  append_ids(text, ids, nullptr);
  if (add_special) ids.insert(ids.end(), frame.after.begin(), frame.after.end());
  return ids;
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text, std::vector<Seam>& seams) const {
  std::vector<std::int32_t> ids;
  seams.clear();
  append_ids(text, ids, &seams);
  return ids;
}

std::string Tokenizer::decode(const std::vector<std::int32_t>& ids, bool skip_special) const {
  const Vocabulary& vocabulary = vocabulary_of(parts_->file.model);
  const AddedTokens& added = parts_->file.added;
  std::vector<std::string> tokens;
  for (const std::int32_t id : ids) {
    const AddedToken* const token = added.token(id);
    if (!token && !vocabulary.has(id)) continue;
    const std::string& text = token ? added.written(*token) : vocabulary.token(id);
    if (!skip_special || !added.is_special(text)) tokens.push_back(text);
  }
  return tokenizing::decode(parts_->file.decoder, std::move(tokens));
}

std::optional<std::int32_t> Tokenizer::token_id(const std::string& token) const {
  Id id = parts_->file.added.id(token);
  if (id == kNoId) id = vocabulary_of(parts_->file.model).id(token);
  return id == kNoId ? std::nullopt : std::optional(id);
}

std::int32_t Tokenizer::vocabulary_size() const {
  const auto model = static_cast<std::int32_t>(vocabulary_of(parts_->file.model).end_id());
  return std::max(model, parts_->file.added.largest_id() + 1);
}

}  // namespace polyphony
