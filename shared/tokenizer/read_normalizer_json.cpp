#include "shared/tokenizer/read_steps_json.h"

namespace polyphony::tokenizing {

const std::string& type_of(const JsonNode& node, int depth) {
  constexpr int kDeepest = 16;
  if (depth > kDeepest)
    node.place().refuse("more than 16 sequences must not contain each other",
                        "write their steps in one sequence");
  return node.at("type").text();
}

void refuse_type(const JsonNode& node, const std::string& what,
                 const std::vector<std::string>& known) {
  node.place().at("type").refuse(
      what + " \"" + node.at("type").text() + "\" is not supported",
      suggest(node.at("type").text(), known) + "; or use a tokenizer without it");
}

Pattern pattern_of(const JsonNode& node) {
  const JsonNode pattern = node.at("pattern").only({"String", "Regex"});
  if (pattern.size() != 1)
    pattern.place().refuse("must have one of \"String\" and \"Regex\"", "remove the other one");
  if (pattern.has("Regex"))
    return Pattern::regex(pattern.at("Regex").text(), pattern.place().at("Regex"));
  const std::string& text = pattern.at("String").text();
  if (text.empty()) pattern.place().at("String").refuse("must not be empty", "remove this step");
  return Pattern::plain(text);
}

std::string character_of(const JsonNode& node) {
  const std::string& text = node.text();
  if (text.empty() || text.size() != utf8_size(text[0]))
    node.place().refuse("must be one character (got \"" + text + "\")", "write one, such as \"▁\"");
  return text;
}

void read_normalizer(const JsonNode& node, std::vector<NormalizerStep>& steps, int depth) {
  const std::string& type = type_of(node, depth);
  if (type == "Sequence") {
    const JsonNode list = node.only({"type", "normalizers"}).at("normalizers").list();
    for (std::size_t i = 0; i < list.size(); ++i) read_normalizer(list.at(i), steps, depth + 1);
  } else if (type == "NFC" || type == "NFD" || type == "NFKC" || type == "NFKD") {
    node.only({"type"});
    steps.push_back(type == "NFC"    ? NormalForm::nfc
                    : type == "NFD"  ? NormalForm::nfd
                    : type == "NFKC" ? NormalForm::nfkc
                                     : NormalForm::nfkd);
  } else if (type == "Lowercase") {
    node.only({"type"});
    steps.push_back(Lowercase{});
  } else if (type == "StripAccents") {
    node.only({"type"});
    steps.push_back(StripAccents{});
  } else if (type == "Nmt") {
    node.only({"type"});
    steps.push_back(Nmt{});
  } else if (type == "ByteLevel") {
    node.only({"type"});
    steps.push_back(ByteLetters{});
  } else if (type == "Replace") {
    node.only({"type", "pattern", "content"});
    steps.push_back(Replace{pattern_of(node), node.at("content").text()});
  } else if (type == "Prepend") {
    steps.push_back(Prepend{node.only({"type", "prepend"}).at("prepend").text()});
  } else if (type == "Strip") {
    node.only({"type", "strip_left", "strip_right"});
    steps.push_back(StripBlanks{node.at("strip_left").boolean(), node.at("strip_right").boolean()});
  } else if (type == "BertNormalizer") {
    node.only({"type", "clean_text", "handle_chinese_chars", "strip_accents", "lowercase"});
    const bool lowercase = node.at("lowercase").boolean();
    steps.push_back(BertNormalizer{node.at("clean_text").boolean(),
                                   node.at("handle_chinese_chars").boolean(),
                                   node.boolean("strip_accents", lowercase), lowercase});
  } else if (type == "Precompiled") {
    node.place().at("type").refuse(
        "the normalizer \"Precompiled\" (SentencePiece's table of replacements) is not supported",
        "replace it by {\"type\": \"NFKC\"}, which differs for few characters");
  } else {
    refuse_type(node, "the normalizer",
                {"NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt", "ByteLevel",
                 "Replace", "Prepend", "Strip", "BertNormalizer", "Sequence"});
  }
}

}  // namespace polyphony::tokenizing
