#include "shared/tokenizer/regex_dialect.h"

#include <array>
#include <cctype>
#include <string_view>
#include <vector>

#include "shared/tokenizer/unicode.h"

namespace polyphony::tokenizing {
namespace {

constexpr std::string_view kWord = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}";
// Outside character classes, Oniguruma also counts ²³¹¼½¾ as word characters.
constexpr std::string_view kMoreWord = "\\x{B2}\\x{B3}\\x{B9}\\x{BC}-\\x{BE}";
constexpr std::string_view kHexDigit = "0-9a-fA-F";

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

class Translation {
 public:
  Translation(const std::string& regex, const Place& place) : in_(regex), place_(place) {}

  std::string run() {
    while (at_ < in_.size()) one();
    if (ignores_case_) check_folding();
    return out_;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    place_.refuse("the regular expression " + what + " at character " + std::to_string(at_) +
                      ", which is not supported",
                  "write it without, e.g. as alternatives of plain character classes");
  }

  bool ahead(std::string_view text) const { return in_.compare(at_, text.size(), text) == 0; }
  void copy(std::size_t count) {
    out_ += in_.substr(at_, count);
    at_ += count;
  }
  void replace(std::size_t count, std::string_view text) {
    out_ += text;
    at_ += count;
  }

  void one() {
    const char c = in_[at_];
    if (c == '(') return open_group();
    if (c == '*' || c == '+' || c == '?') return copy(1);
    if (c == '{' && interval()) return;
    if (c == ')') {
      if (groups_.empty()) refuse("closes a group that it did not open");
      atom_ = groups_.back();
      groups_.pop_back();
      return copy(1);
    }
    atom_ = out_.size();
    if (c == '\\') return escape(false);
    if (c == '[') return char_class();
    if (c == '{') return replace(1, "\\{");
    copy(1);
  }

  // Without regard to case, only Oniguruma takes "ß" for "ss", "ﬁ" for "fi" and the like.
  void check_folding() {
    std::string lower;
    for (const char c : in_)
      lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    for (const std::string_view letters : {"ss", "st", "ff", "fi", "fl"})
      if (lower.find(letters) != std::string::npos)
        refuse("ignores the case of \"" + std::string(letters) + "\"");
    for (std::size_t at = 0; at < in_.size();)  // beyond, letters have no case
      if (const CodePoint code = next_code_point(in_, at); code >= 0x80 && code < 0x2E80)
        refuse("ignores the case of letters beyond ASCII");
  }

  void open_group() {
    groups_.push_back(out_.size());
    for (const std::string_view same : {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>"})
      if (ahead(same)) return copy(same.size());
    if (!ahead("(?")) return replace(1, "(?:");  // no back references: no need to capture
    std::size_t end = at_ + 2;
    std::string options;
    for (; end < in_.size() && (is_letter(in_[end]) || in_[end] == '-'); ++end) {
      if (in_[end] != 'i' && in_[end] != 'm' && in_[end] != '-') refuse("sets an option");
      options += in_[end] == 'm' ? 's' : in_[end];
      ignores_case_ = ignores_case_ || in_[end] == 'i';
    }
    if (end < in_.size() && in_[end] == ':' && end > at_ + 2)
      return replace(end + 1 - at_, "(?" + options + ":");
    // Alone, options hold until the end of the group, across its alternatives only in PCRE2.
    if (end >= in_.size() || in_[end] != ')' || at_ != 0) refuse("has a special group");
    groups_.pop_back();
    replace(end + 1 - at_, "(?" + options + ")");
  }

  // Translates {n}, {n,}, {,m} or {n,m}. Returns false if it is none of these.
  bool interval() {
    std::size_t end = at_ + 1;
    std::string low, high;
    while (end < in_.size() && is_digit(in_[end])) low += in_[end++];
    const bool exact = end < in_.size() && in_[end] == '}';
    if (!exact) {
      if (end >= in_.size() || in_[end] != ',') return false;
      ++end;
      while (end < in_.size() && is_digit(in_[end])) high += in_[end++];
    }
    if (end >= in_.size() || in_[end] != '}' || (low.empty() && high.empty())) return false;
    const bool again = end + 1 < in_.size() && (in_[end + 1] == '+' || in_[end + 1] == '*' ||
                                                (in_[end + 1] == '?' && exact));
    if (again) out_.insert(atom_, "(?:");
    out_ += "{" + (low.empty() ? "0" : low) + (exact ? "" : "," + high) + "}";
    if (again) out_ += ")";
    at_ = end + 1;
    return true;
  }

  void escape(bool in_class) {
    if (at_ + 1 >= in_.size()) refuse("ends with a backslash");
    const char c = in_[at_ + 1];
    if (c == 'p' || c == 'P') return property(in_class);
    const auto classed = [&](std::string_view members, bool negated) {
      if (negated && in_class) refuse(std::string("has \\") + c + " in a character class");
      replace(
          2, in_class ? std::string(members) : (negated ? "[^" : "[") + std::string(members) + "]");
    };
    switch (c) {
      case 's':
        return replace(2, "\\p{White_Space}");
      case 'S':
        return replace(2, "\\P{White_Space}");
      case 'd':
        return replace(2, "\\p{Nd}");
      case 'D':
        return replace(2, "\\P{Nd}");
      case 'w':
      case 'W':
        return classed(std::string(kWord) += in_class ? "" : kMoreWord, c == 'W');
      case 'h':
      case 'H':
        return classed(kHexDigit, c == 'H');
      case 'v':
        return replace(2, "\\x{0B}");
      case 'r':
      case 'n':
      case 't':
      case 'f':
      case 'a':
      case 'e':
        return copy(2);
      case 'x':
        return hex(in_class);
      case 'u':
        return unicode();
      default:
        break;
    }
    if (!in_class && (c == 'A' || c == 'z' || c == 'Z')) return copy(2);
    if (!in_class && (c == 'b' || c == 'B')) return boundary(c == 'b');
    if (is_letter(c) || is_digit(c)) refuse(std::string("has \\") + c);
    if (static_cast<unsigned char>(c) >= 0x80) return replace(1, "");
    copy(2);
  }

  void boundary(bool at_one) {
    const std::string word = "[" + std::string(kWord) + std::string(kMoreWord) + "]";
    replace(2, at_one ? "(?:(?<=" + word + ")(?!" + word + ")|(?<!" + word + ")(?=" + word + "))"
                      : "(?:(?<=" + word + ")(?=" + word + ")|(?<!" + word + ")(?!" + word + "))");
  }

  void hex(bool) {
    std::size_t end = at_ + 2;
    std::string digits;
    const bool braced = end < in_.size() && in_[end] == '{';
    if (braced) ++end;
    while (end < in_.size() && digits.size() < (braced ? 8u : 2u) &&
           std::isxdigit(static_cast<unsigned char>(in_[end])))
      digits += in_[end++];
    if (digits.empty() || (braced && (end >= in_.size() || in_[end] != '}')))
      refuse("has an incomplete \\x");
    // Without braces, \x names a byte, not a code point.
    if (!braced && digits.size() == 2 && digits[0] >= '8') refuse("names a byte by \\x");
    replace(end + (braced ? 1 : 0) - at_, "\\x{" + digits + "}");
  }

  void unicode() {
    const std::string digits = in_.substr(at_ + 2, 4);
    for (const char c : digits)
      if (!std::isxdigit(static_cast<unsigned char>(c))) refuse("has an incomplete \\u");
    if (digits.size() < 4) refuse("has an incomplete \\u");
    replace(6, "\\x{" + digits + "}");
  }

  void property(bool in_class) {
    if (at_ + 2 >= in_.size() || in_[at_ + 2] != '{') refuse("has \\p without braces");
    const std::size_t end = in_.find('}', at_);
    if (end == std::string::npos) refuse("has an incomplete \\p");
    std::string name = in_.substr(at_ + 3, end - at_ - 3);
    bool negated = in_[at_ + 1] == 'P';
    if (!name.empty() && name[0] == '^') {
      negated = !negated;
      name.erase(0, 1);
    }
    if (name.empty()) refuse("has a property without a name");
    for (const char c : name)
      if (!is_letter(c) && c != '_') refuse("has the property \"" + name + "\"");
    struct Other {
      std::string_view here, there;
    };
    static constexpr std::array<Other, 9> kOthers = {{{"Alpha", "Alphabetic"},
                                                      {"Digit", "Nd"},
                                                      {"Upper", "Uppercase"},
                                                      {"Lower", "Lowercase"},
                                                      {"Space", "White_Space"},
                                                      {"Punct", "P"},
                                                      {"Letter", "L"},
                                                      {"Number", "N"},
                                                      {"Punctuation", "P"}}};
    for (const auto& [here, there] : kOthers)
      if (name == here) name = there;
    for (const std::string_view posix :
         {"Alnum", "Blank", "Cntrl", "Graph", "Print", "XDigit", "Word", "ASCII"})
      if (name == posix) refuse("has the property \"" + name + "\"");
    static_cast<void>(in_class);
    // Categories have one or two letters; of longer names, scripts are what tokenizers use.
    static constexpr std::array<std::string_view, 6> kBinary = {
        "Alphabetic", "Uppercase", "Lowercase", "White_Space", "Emoji", "Join_Control"};
    bool script = name.size() > 2;
    for (const std::string_view binary : kBinary) script = script && name != binary;
    out_ += std::string(negated ? "\\P{" : "\\p{") + (script ? "sc:" : "") + name + "}";
    at_ = end + 1;
  }

  void char_class() {
    copy(1);
    if (at_ < in_.size() && in_[at_] == '^') copy(1);
    if (at_ < in_.size() && in_[at_] == ']') refuse("has a class that begins with ]");
    while (at_ < in_.size() && in_[at_] != ']') {
      if (in_[at_] == '[') refuse("has [ in a character class");
      if (ahead("&&")) refuse("has && in a character class");
      if (in_[at_] == '\\')
        escape(true);
      else
        copy(1);
    }
    if (at_ >= in_.size()) refuse("has an open character class");
    copy(1);
  }

  const std::string& in_;
  const Place& place_;
  std::size_t at_ = 0;
  bool ignores_case_ = false;
  std::string out_;
  std::size_t atom_ = 0;             // where what a quantifier repeats begins, in out_
  std::vector<std::size_t> groups_;  // where open groups begin, in out_
};

}  // namespace

std::string pcre2_from_oniguruma(const std::string& regex, const Place& place) {
  return Translation(regex, place).run();
}

}  // namespace polyphony::tokenizing
