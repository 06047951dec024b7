#include "shared/tokenizer/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <new>

#include "shared/tokenizer/regex_dialect.h"
#include "shared/tokenizer/unicode.h"

namespace polyphony::tokenizing {
namespace {

constexpr std::size_t kLongestRegex = 1 << 16;
constexpr std::uint32_t kMostSteps = 10'000'000;
constexpr std::size_t kStack = 16 << 20;

template <auto free>
struct Free {
  template <class T>
  void operator()(T* owned) const {
    free(owned);
  }
};

// What a thread needs to match any pattern.
struct Matcher {
  std::unique_ptr<pcre2_match_data, Free<pcre2_match_data_free>> data{
      pcre2_match_data_create(1, nullptr)};
  std::unique_ptr<pcre2_match_context, Free<pcre2_match_context_free>> context{
      pcre2_match_context_create(nullptr)};
  std::unique_ptr<pcre2_jit_stack, Free<pcre2_jit_stack_free>> stack{
      pcre2_jit_stack_create(32 << 10, kStack, nullptr)};
  Matcher() {
    if (!data || !context || !stack) throw std::bad_alloc();
    pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
    pcre2_set_match_limit(context.get(), kMostSteps);
    pcre2_set_depth_limit(context.get(), 1 << 20);
    pcre2_set_heap_limit(context.get(), kStack >> 10);
  }
};

std::string message_of(int error) {
  PCRE2_UCHAR text[256];
  pcre2_get_error_message(error, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

}  // namespace

struct Pattern::Code {
  std::unique_ptr<pcre2_code, Free<pcre2_code_free>> compiled;
  Place place;
};

Pattern Pattern::regex(const std::string& oniguruma, const Place& place) {
  if (oniguruma.empty() || oniguruma.size() > kLongestRegex)
    place.refuse("a regular expression must have 1 to 65,536 bytes (got " +
                     std::to_string(oniguruma.size()) + ")",
                 "shorten it, or remove this part");
  const std::string translated = pcre2_from_oniguruma(oniguruma, place);
  const std::unique_ptr<pcre2_compile_context, Free<pcre2_compile_context_free>> context(
      pcre2_compile_context_create(nullptr));
  if (!context) throw std::bad_alloc();
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE where = 0;
  auto code = std::make_shared<Code>();
  code->place = place;
  code->compiled.reset(
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &error,
                    &where, context.get()));
  if (!code->compiled)
    place.refuse("the regular expression is not understood: " + message_of(error),
                 "correct it near character " + std::to_string(where));
  // Without machine code (a system that forbids it), PCRE2 interprets the pattern.
  static_cast<void>(pcre2_jit_compile(code->compiled.get(), PCRE2_JIT_COMPLETE));
  Pattern made;
  made.code_ = std::move(code);
  return made;
}

Pattern Pattern::plain(std::string text) {
  Pattern made;
  made.plain_ = std::move(text);
  return made;
}

bool Pattern::next(std::string_view text, std::size_t from, bool anchored, Span& found) const {
  if (!code_) {
    const std::size_t at =
        anchored ? (text.substr(from).starts_with(plain_) ? from : std::string_view::npos)
                 : text.find(plain_, from);
    found = {at, at + plain_.size()};
    return at != std::string_view::npos;
  }
  thread_local const Matcher matcher;
  const int got =
      pcre2_match(code_->compiled.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                  from, PCRE2_NO_UTF_CHECK | (anchored ? PCRE2_ANCHORED : 0u), matcher.data.get(),
                  matcher.context.get());
  if (got == PCRE2_ERROR_NOMATCH) return false;
  if (got < 0)
    code_->place.refuse("the regular expression cannot split a text of " +
                            std::to_string(text.size()) + " bytes: " + message_of(got),
                        "give the text in shorter pieces");
  const PCRE2_SIZE* const ends = pcre2_get_ovector_pointer(matcher.data.get());
  found = {ends[0], ends[1]};
  return true;
}

void Pattern::find_all(std::string_view text, std::vector<Span>& found) const {
  found.clear();
  constexpr std::size_t kNone = ~std::size_t{0};
  std::size_t last = kNone;
  for (std::size_t from = 0; from <= text.size();) {
    Span one{0, 0};
    if (!next(text, from, false, one)) break;
    if (one.begin == one.end && one.end == last) {
      from += from < text.size() ? utf8_size(text[from]) : 1;
      continue;
    }
    found.push_back(one);
    last = from = one.end;
  }
}

bool Pattern::matches_at(std::string_view text, std::size_t at) const {
  Span one{0, 0};
  return next(text, at, true, one);
}

}  // namespace polyphony::tokenizing
