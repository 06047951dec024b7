// Translates regular expressions from the dialect of tokenizer.json (Oniguruma, which the library
// `tokenizers` uses) to PCRE2's. Where both dialects write the same but mean something else:
//   \s \d \w      Unicode's White_Space; Nd; Alphabetic, M, Nd and Pc, and outside of
//                 character classes ²³¹¼½¾
//   \h \v         a hexadecimal digit; U+000B
//   {1,3}+ {2}?   the repeated part is repeated, or optional: not possessive, not lazy
//   {,3}          from 0 to 3
//   \p{Han}       the script itself, without script extensions
//   (?m:...)      a dot matches line breaks
// Not translated, but refused by name: back references, absence operators, character classes in
// classes, intersections (&&), POSIX brackets, \K, \G, \R, \X, options in the middle of a group,
// letters that fold to several without regard to case.
// Source: Oniguruma 6.9, doc/RE and doc/SYNTAX.md; pcre2pattern(3).
#pragma once

#include <string>

#include "shared/tokenizer/place.h"

namespace polyphony::tokenizing {

// Returns the regular expression for PCRE2 with the options UTF, UCP and MULTILINE. Throws
// InputError at `place` if it contains something that is not translated.
std::string pcre2_from_oniguruma(const std::string& regex, const Place& place);

}  // namespace polyphony::tokenizing
