// A compiled pattern: a regular expression (PCRE2, compiled to machine code where the system
// permits), or a plain text.
//   Matching is thread-safe. Backtracking is limited: a text that needs more is refused.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "shared/tokenizer/place.h"

namespace polyphony::tokenizing {

struct Span {
  std::size_t begin, end;
  bool operator==(const Span&) const = default;
};

class Pattern {
 public:
  // Throws InputError at `place` if the regular expression is not understood.
  static Pattern regex(const std::string& oniguruma, const Place& place);
  static Pattern plain(std::string text);

  // Sets `found` to the matches from left to right. An empty match directly behind another one does
  // not count. The text must be valid UTF-8.
  void find_all(std::string_view text, std::vector<Span>& found) const;
  // Returns true if the pattern matches at `at`.
  bool matches_at(std::string_view text, std::size_t at) const;

 private:
  struct Code;
  bool next(std::string_view text, std::size_t from, bool anchored, Span& found) const;

  std::shared_ptr<const Code> code_;  // null: plain_
  std::string plain_;
};

}  // namespace polyphony::tokenizing
