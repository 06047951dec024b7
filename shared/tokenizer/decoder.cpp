#include "shared/tokenizer/decoder.h"

#include <charconv>
#include <optional>
#include <utility>

#include "shared/tokenizer/letters.h"

namespace polyphony::tokenizing {
namespace {

using Tokens = std::vector<std::string>;

std::string replaced(const std::string& text, std::string_view from, std::string_view to) {
  if (from.empty()) return text;
  std::string out;
  std::size_t last = 0;
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, last)) {
    out.append(text, last, at - last);
    out += to;
    last = at + from.size();
  }
  return out.append(text, last);
}

// Source: Hugging Face's `tokenizers`, decoders/wordpiece.rs.
std::string cleaned(std::string text) {
  static constexpr std::pair<std::string_view, std::string_view> kRules[] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : kRules) text = replaced(text, from, to);
  return text;
}

std::optional<char> fallback_byte(const std::string& token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
  unsigned value = 0;
  // Like Rust's from_str_radix, which also reads "+5".
  const char* begin = token.data() + 3 + (token[3] == '+' ? 1 : 0);
  const auto [end, error] = std::from_chars(begin, token.data() + 5, value, 16);
  if (error != std::errc() || end != token.data() + 5) return std::nullopt;
  return static_cast<char>(value);
}

struct Decode {
  Tokens& tokens;

  void operator()(DecodeLetters) const {
    std::string bytes;
    for (const std::string& token : tokens) {
      const std::size_t before = bytes.size();
      for (std::size_t at = 0; at < token.size();) {
        const int byte = byte_of_letter(next_code_point(token, at));
        if (byte < 0) {  // not of letters: kept as it is
          bytes.resize(before);
          bytes += token;
          break;
        }
        bytes += static_cast<char>(byte);
      }
    }
    tokens = {repaired_utf8(bytes)};
  }
  void operator()(const DecodeMetaspace& step) const {
    for (std::size_t i = 0; i < tokens.size(); ++i)
      tokens[i] = replaced(tokens[i], step.replacement, i == 0 && step.drop_first ? "" : " ");
  }
  void operator()(DecodeByteFallback) const {
    Tokens out;
    std::string bytes;
    const auto flush = [&] {
      if (first_invalid_byte(bytes))
        out.insert(out.end(), bytes.size(), "\xEF\xBF\xBD");
      else if (!bytes.empty())
        out.push_back(bytes);
      bytes.clear();
    };
    for (std::string& token : tokens) {
      if (const auto byte = fallback_byte(token)) {
        bytes += *byte;
        continue;
      }
      flush();
      out.push_back(std::move(token));
    }
    flush();
    tokens = std::move(out);
  }
  void operator()(const DecodeReplace& step) const {
    for (std::string& token : tokens) {
      NormalText text{std::move(token), 0};
      normalize({step.replace}, text);
      token = std::move(text.text);
    }
  }
  void operator()(const DecodeStrip& step) const {
    std::string content;
    append_utf8(content, step.content);
    for (std::string& token : tokens) {
      const std::string_view view = token;
      std::size_t begin = 0, end = token.size();
      for (std::size_t i = 0; i < step.start && view.substr(begin).starts_with(content); ++i)
        begin += content.size();
      for (std::size_t i = 0; i < step.stop && view.substr(begin, end - begin).ends_with(content);
           ++i)
        end -= content.size();
      token = token.substr(begin, end - begin);
    }
  }
  void operator()(DecodeFuse) const {
    std::string all;
    for (const std::string& token : tokens) all += token;
    tokens = {std::move(all)};
  }
  void operator()(const DecodeWordPiece& step) const {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (i > 0)
        tokens[i] = tokens[i].starts_with(step.prefix) ? tokens[i].substr(step.prefix.size())
                                                       : " " + tokens[i];
      if (step.cleanup) tokens[i] = cleaned(std::move(tokens[i]));
    }
  }
  void operator()(const DecodeSuffix& step) const {
    for (std::size_t i = 0; i < tokens.size(); ++i)
      tokens[i] = replaced(tokens[i], step.suffix, i + 1 == tokens.size() ? "" : " ");
  }
};

}  // namespace

std::string decode(const std::vector<DecoderStep>& steps, std::vector<std::string> tokens) {
  for (const DecoderStep& step : steps) std::visit(Decode{tokens}, step);
  std::string text;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (steps.empty() && i > 0) text += ' ';
    text += tokens[i];
  }
  return text;
}

}  // namespace polyphony::tokenizing
