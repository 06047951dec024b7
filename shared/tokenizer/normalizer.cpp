#include "shared/tokenizer/normalizer.h"

#include <algorithm>
#include <utility>

#include "shared/error.h"
#include "shared/tokenizer/letters.h"

namespace polyphony::tokenizing {
namespace {

// Calls put(code, out) for each code point of the text.
template <class Put>
void map(NormalText& text, const Put& put) {
  std::string out;
  out.reserve(text.text.size());
  std::size_t head = 0;
  for (std::size_t at = 0; at < text.text.size();) {
    put(next_code_point(text.text, at), out);
    if (at <= text.head) head = out.size();
  }
  text = {std::move(out), head};
}

std::size_t count_code_points(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size(); at += utf8_size(text[at])) ++count;
  return count;
}

void remove(NormalText& text, bool (*removed)(CodePoint)) {
  map(text, [&](CodePoint code, std::string& out) {
    if (!removed(code)) append_utf8(out, code);
  });
}

// The block "CJK Unified Ideographs" and its like, as BERT lists them.
bool is_chinese(CodePoint c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
         (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
         (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

std::size_t most_of(std::size_t bytes) { return 4096 + 64 * bytes; }

void limit(std::size_t bytes, std::size_t most) {
  if (bytes > most)
    throw InputError("", "/normalizer",
                     "a text must not become longer than " + std::to_string(most) + " bytes",
                     "use the tokenizer.json as it was published");
}

struct Normalize {
  NormalText& text;
  std::size_t most;  // bytes

  void operator()(NormalForm form) const {
    std::string out = normal_form(text.text, form);
    if (text.head > 0 && out != text.text) {
      const std::string_view first = std::string_view(text.text).substr(0, text.head);
      std::size_t left = count_code_points(normal_form(first, form)), head = 0;
      for (; left > 0 && head < out.size(); --left) head += utf8_size(out[head]);
      text.head = head;
    }
    text.text = std::move(out);
  }
  void operator()(Lowercase) const {
    map(text, [](CodePoint code, std::string& out) { append_lower_case(out, code); });
  }
  void operator()(StripAccents) const { remove(text, is_mark); }
  void operator()(ByteLetters) const {
    const std::string_view whole = text.text;
    std::string out;
    append_letters(out, whole.substr(0, text.head));
    const std::size_t head = out.size();
    append_letters(out, whole.substr(text.head));
    text = {std::move(out), head};
  }
  void operator()(Nmt) const {
    map(text, [](CodePoint c, std::string& out) {
      if ((c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F ||
          c == 0x9F)
        return;
      const bool blank = c == 9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 ||
                         (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 ||
                         c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
      append_utf8(out, blank ? ' ' : c);
    });
  }
  void operator()(const Replace& step) const {
    if (text.text.empty()) return;
    std::vector<Span> found;
    step.pattern.find_all(text.text, found);
    if (found.empty()) return;
    limit(found.size() * step.content.size(), most);
    std::string out;
    std::size_t last = 0, head = 0;
    for (const Span& span : found) {
      out.append(text.text, last, span.begin - last);
      if (span.begin <= text.head) head = out.size();
      out += step.content;
      // The content stands where the last character of the match stood.
      if (span.end <= text.head) head = out.size();
      last = span.end;
    }
    if (last < text.head) head = out.size() + text.head - last;
    out.append(text.text, last);
    text = {std::move(out), head};
  }
  void operator()(const Prepend& step) const {
    if (text.text.empty()) return;
    text.text.insert(0, step.text);
    if (text.head > 0) text.head += step.text.size();
  }
  void operator()(const StripBlanks& step) const {
    std::size_t begin = 0, end = text.text.size();
    for (std::size_t at = 0; step.left && at < end; begin = at)
      if (!is_white_space(next_code_point(text.text, at))) break;
    while (step.right && end > begin) {
      const std::size_t before = code_point_before(text.text, end);
      std::size_t at = before;
      if (!is_white_space(next_code_point(text.text, at))) break;
      end = before;
    }
    const std::size_t head = std::min(std::max(text.head, begin), end) - begin;
    text = {text.text.substr(begin, end - begin), head};
  }
  void operator()(const BertNormalizer& step) const {
    if (step.clean)
      map(text, [](CodePoint c, std::string& out) {
        const bool line = c == '\t' || c == '\n' || c == '\r';
        if (c == 0 || c == 0xFFFD || (!line && is_control(c))) return;
        append_utf8(out, is_white_space(c) ? ' ' : c);
      });
    if (step.separate_chinese)
      map(text, [](CodePoint c, std::string& out) {
        const bool chinese = is_chinese(c);
        if (chinese) out += ' ';
        append_utf8(out, c);
        if (chinese) out += ' ';
      });
    if (step.strip_accents) {
      (*this)(NormalForm::nfd);
      remove(text, is_nonspacing_mark);
    }
    if (step.lowercase) (*this)(Lowercase{});
  }
};

}  // namespace

void normalize(const std::vector<NormalizerStep>& steps, NormalText& text) {
  const std::size_t most = most_of(text.text.size());
  for (const NormalizerStep& step : steps) {
    std::visit(Normalize{text, most}, step);
    limit(text.text.size(), most);
  }
}

}  // namespace polyphony::tokenizing
