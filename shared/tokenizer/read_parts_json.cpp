#include "shared/tokenizer/read_parts_json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "shared/tokenizer/read_steps_json.h"

namespace polyphony::tokenizing {
namespace {

using Json = nlohmann::json;

// {"token": id, …}
Vocabulary read_vocabulary(const JsonNode& node) {
  if (!node.raw().is_object() || node.size() == 0)
    node.place().refuse("must be an object of tokens and ids",
                        "use the tokenizer.json as it was published");
  std::vector<std::pair<std::string, Id>> tokens;
  std::vector<bool> given;
  for (const auto& [token, value] : node.raw().items()) {
    const auto id = static_cast<Id>(JsonNode(value, node.place().at(token)).integer(0, kLargestId));
    if (static_cast<std::size_t>(id) >= given.size())
      given.resize(static_cast<std::size_t>(id) + 1);
    if (given[static_cast<std::size_t>(id)])
      node.place().at(token).refuse("id " + std::to_string(id) + " must be given once (got twice)",
                                    "use the tokenizer.json as it was published");
    given[static_cast<std::size_t>(id)] = true;
    tokens.emplace_back(token, id);
  }
  return Vocabulary(std::move(tokens));
}

// ["a b", …] or [["a", "b"], …]
std::vector<Bpe::Merge> read_merges(const JsonNode& node) {
  std::vector<Bpe::Merge> merges;
  merges.reserve(node.list().size());
  for (std::size_t i = 0; i < node.size(); ++i) {
    const Json& merge = node.raw()[i];
    const auto refuse = [&] {
      node.place().at(i).refuse("must be two tokens", "write \"a b\" or [\"a\", \"b\"]");
    };
    if (merge.is_array()) {
      if (merge.size() != 2 || !merge[0].is_string() || !merge[1].is_string()) refuse();
      merges.emplace_back(merge[0].get<std::string>(), merge[1].get<std::string>());
      continue;
    }
    if (!merge.is_string()) refuse();
    const auto& text = merge.get_ref<const std::string&>();
    if (text.starts_with("#version")) continue;
    const std::size_t blank = text.find(' ');
    if (blank == std::string::npos || text.find(' ', blank + 1) != std::string::npos) refuse();
    merges.emplace_back(text.substr(0, blank), text.substr(blank + 1));
  }
  return merges;
}

// A part of a token that is put before or behind each symbol.
std::string affix_of(const JsonNode& node, const std::string& key) {
  std::string text = node.text(key, "");
  if (text.size() > 64)
    node.at(key).place().refuse(
        "must have at most 64 bytes (got " + std::to_string(text.size()) + ")",
        "use the tokenizer.json as it was published");
  return text;
}

Model read_bpe(const JsonNode& node) {
  node.only({"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
             "fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges"});
  if (node.has("dropout") && node.at("dropout").number() != 0)
    node.at("dropout").place().refuse("must be null: merges left out randomly are not supported",
                                      "write null");
  BpeOptions options;
  if (node.has("unk_token")) options.unknown = node.at("unk_token").text();
  options.prefix = affix_of(node, "continuing_subword_prefix");
  options.suffix = affix_of(node, "end_of_word_suffix");
  options.fuse_unknown = node.boolean("fuse_unk", false);
  options.byte_fallback = node.boolean("byte_fallback", false);
  options.ignore_merges = node.boolean("ignore_merges", false);
  return Bpe(read_vocabulary(node.at("vocab")), read_merges(node.at("merges")), std::move(options),
             node.place());
}

// Returns a score as `tokenizers` reads it: its JSON library rounds twice, the digits as a whole
// number and then their quotient by a power of ten, and a difference in the last bit decides ties.
// Source: serde_json, de.rs, f64_from_parts.
double read_twice_rounded(double exact) {
  std::array<char, 32> digits{};
  const auto [end, unused] = std::to_chars(digits.data(), digits.data() + digits.size(),
                                           std::abs(exact), std::chars_format::scientific);
  std::uint64_t significand = 0;
  int exponent = 0, decimals = 0;
  const char* at = digits.data();
  for (bool point = false; at != end && *at != 'e'; ++at) {
    if (*at == '.') {
      point = true;
      continue;
    }
    significand = 10 * significand + static_cast<std::uint64_t>(*at - '0');
    decimals += point ? 1 : 0;
  }
  if (at != end) std::from_chars(at + (at[1] == '+' ? 2 : 1), end, exponent);
  exponent -= decimals;
  auto value = static_cast<double>(significand);
  if (exponent < -308) {
    value /= 1e308;
    exponent += 308;
  }
  // Powers of ten as the compiler reads them: each the nearest number.
  const double power = std::stod("1e" + std::to_string(std::min(std::abs(exponent), 308)));
  value = exponent >= 0 ? value * power : value / power;
  return exact < 0 ? -value : value;
}

Model read_unigram(const JsonNode& node) {
  node.only({"type", "unk_id", "vocab", "byte_fallback"});
  const JsonNode list = node.at("vocab").list();
  std::vector<Unigram::Piece> pieces;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Json& piece = list.raw()[i];
    if (!piece.is_array() || piece.size() != 2 || !piece[0].is_string() || !piece[1].is_number())
      list.place().at(i).refuse("must be a token and its score", "write [\"▁a\", -3.5]");
    pieces.emplace_back(piece[0].get<std::string>(), read_twice_rounded(piece[1].get<double>()));
  }
  if (pieces.empty() || pieces.size() > static_cast<std::size_t>(kLargestId))
    list.place().refuse(
        "must have 1 to 4,194,303 tokens (got " + std::to_string(pieces.size()) + ")",
        "use the tokenizer.json as it was published");
  const auto most = static_cast<std::int64_t>(pieces.size()) - 1;
  const Id unknown =
      node.has("unk_id") ? static_cast<Id>(node.at("unk_id").integer(0, most)) : kNoId;
  return Unigram(pieces, unknown, node.boolean("byte_fallback", false), node.place());
}

Model read_word_piece(const JsonNode& node) {
  node.only(
      {"type", "unk_token", "continuing_subword_prefix", "max_input_chars_per_word", "vocab"});
  return WordPiece(
      read_vocabulary(node.at("vocab")), node.at("unk_token").text(),
      affix_of(node, "continuing_subword_prefix"),
      static_cast<std::size_t>(node.at("max_input_chars_per_word").integer(0, 1 << 20)),
      node.place());
}

Model read_model(const JsonNode& node) {
  std::string type = node.text("type", "");
  if (type.empty())  // files of before 2021
    type = node.has("merges")                     ? "BPE"
           : node.has("max_input_chars_per_word") ? "WordPiece"
           : node.has("unk_id")                   ? "Unigram"
                                                  : "";
  if (type == "BPE") return read_bpe(node);
  if (type == "Unigram") return read_unigram(node);
  if (type == "WordPiece") return read_word_piece(node);
  if (type.empty()) node.at("type");
  refuse_type(node, "the model", {"BPE", "Unigram", "WordPiece"});
}

AddedTokens read_added(const JsonNode& list, const Model& model,
                       const std::vector<NormalizerStep>& normalizer) {
  const Vocabulary& vocabulary = vocabulary_of(model);
  std::vector<AddedToken> tokens;
  auto next = static_cast<Id>(std::holds_alternative<Unigram>(model) ? vocabulary.end_id()
                                                                     : vocabulary.size());
  for (std::size_t i = 0; i < list.list().size(); ++i) {
    const JsonNode node = list.at(i).only(
        {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
    AddedToken token;
    token.content = node.at("content").text();
    token.id = static_cast<Id>(node.at("id").integer(0, kLargestId));
    token.single_word = node.at("single_word").boolean();
    token.lstrip = node.at("lstrip").boolean();
    token.rstrip = node.at("rstrip").boolean();
    token.normalized = node.at("normalized").boolean();
    token.special = node.at("special").boolean();
    if (token.content.empty()) node.at("content").place().refuse("must not be empty", "remove it");
    // Other readers give ids themselves: that of the model, or else the next free one.
    const Id known = vocabulary.id(token.content);
    const Id wanted = known != kNoId ? known : next++;
    if (token.id != wanted)
      node.at("id").place().refuse("must be " + std::to_string(wanted) + " (got " +
                                       std::to_string(token.id) +
                                       "): the id in the vocabulary, or else the next free one",
                                   "use the tokenizer.json as it was published");
    tokens.push_back(std::move(token));
  }
  return AddedTokens(std::move(tokens), normalizer, list.place());
}

Json parse(const std::string& text, const std::string& file) {
  try {
    return Json::parse(text, [&](int depth, Json::parse_event_t, Json&) {
      if (depth > 64)
        throw InputError(file, "", "more than 64 levels of nesting", "flatten the document");
      return true;
    });
  } catch (const Json::exception& error) {
    std::string what = error.what();
    if (const auto bracket = what.find("] "); bracket != std::string::npos)
      what.erase(0, bracket + 2);
    std::replace_if(
        what.begin(), what.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
    throw InputError(file, "", "not JSON: " + what, "give a tokenizer.json");
  }
}

}  // namespace

FileParts read_tokenizer(const std::string& text, const std::string& file) {
  const Json json = parse(text, file);
  const JsonNode root(json, {file, ""});
  root.only({"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
             "post_processor", "decoder", "model"});
  if (root.has("version") && root.at("version").text() != "1.0")
    root.at("version").place().refuse("must be \"1.0\" (got \"" + root.at("version").text() + "\")",
                                      "convert the file");
  for (const char* const cuts : {"truncation", "padding"})
    if (root.has(cuts))
      root.at(cuts).place().refuse("must be null: texts are neither cut nor filled up",
                                   "write null");
  std::vector<NormalizerStep> normalizer;
  std::vector<PreTokenizerStep> pre_tokenizer;
  std::vector<DecoderStep> decoder;
  Frame frame;
  if (root.has("normalizer")) read_normalizer(root.at("normalizer"), normalizer);
  if (root.has("pre_tokenizer")) read_pre_tokenizer(root.at("pre_tokenizer"), pre_tokenizer);
  if (root.has("post_processor")) read_post_processor(root.at("post_processor"), frame);
  if (root.has("decoder")) {
    read_decoder(root.at("decoder"), decoder);
    if (decoder.empty()) decoder.push_back(DecodeFuse{});
  }
  Model model = read_model(root.at("model"));
  const Json none = Json::array();
  AddedTokens added = read_added(
      root.has("added_tokens") ? root.at("added_tokens") : JsonNode(none, {file, "/added_tokens"}),
      model, normalizer);
  return {std::move(normalizer), std::move(pre_tokenizer), std::move(model),
          std::move(added),      std::move(frame),         std::move(decoder)};
}

}  // namespace polyphony::tokenizing
