#include "traces/kineto/json_pull.h"

#include <charconv>
#include <cmath>
#include <cstring>

#include "shared/error.h"

namespace polyphony::traces {
namespace {

constexpr std::size_t kNothing = std::string::npos;
constexpr std::size_t kBlock = std::size_t{1} << 18;
constexpr std::size_t kLongest = std::size_t{1} << 24;  // of a string; names have hundreds of bytes
constexpr std::size_t kDeepest = 64;                    // of nested containers that are read

bool blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
bool ends_token(char c) { return blank(c) || c == ',' || c == ']' || c == '}' || c == ':'; }

void append_utf8(std::string& text, unsigned code) {
  const auto put = [&](unsigned byte) { text += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | code >> 6);
    put(0x80 | (code & 0x3f));
  } else {  // surrogate halves become three bytes each; Names repairs them
    put(0xe0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  }
}

}  // namespace

JsonPull::JsonPull(ByteSource bytes, std::string file, std::function<std::string()> place)
    : bytes_(std::move(bytes)),
      file_(std::move(file)),
      place_(std::move(place)),
      buffer_(kBlock, '\0'),
      mark_(kNothing) {}

void JsonPull::fail(const std::string& what) const {
  throw InputError(file_, place_(), what + " (byte " + std::to_string(passed_ + at_) + ")",
                   "export the trace again, or copy the whole file");
}

void JsonPull::fail_cut() const {
  throw InputError(
      file_, place_(),
      "the file ends in the middle, after " + std::to_string(passed_ + at_) + " bytes",
      "export the trace again, or copy the whole file: sums over a part would be wrong");
}

// Reads more bytes after those that are kept. Returns false at the end.
bool JsonPull::fill() {
  const std::size_t from = mark_ == kNothing ? at_ : std::min(mark_, at_);
  std::memmove(buffer_.data(), buffer_.data() + from, end_ - from);
  passed_ += from;
  end_ -= from;
  at_ -= from;
  if (mark_ != kNothing) mark_ -= from;
  if (end_ == buffer_.size()) {
    if (buffer_.size() >= kLongest) fail("a single value has more than 16 MiB");
    buffer_.resize(2 * buffer_.size());
  }
  const std::size_t count = bytes_(buffer_.data() + end_, buffer_.size() - end_);
  end_ += count;
  return count > 0;
}

char JsonPull::peek() {
  for (;;) {
    while (at_ < end_ && blank(buffer_[at_])) ++at_;
    if (at_ < end_) return buffer_[at_];
    if (!fill()) return 0;
  }
}

char JsonPull::next() {
  if (at_ == end_ && !fill()) fail_cut();
  return buffer_[at_++];
}

void JsonPull::begin(char open) {
  const char found = peek();
  if (found == 0) fail_cut();
  if (found != open) fail(open == '{' ? "an object is expected" : "an array is expected");
  ++at_;
  if (first_.size() == kDeepest) fail("values are nested too deeply");
  first_.push_back(1);
}

// Moves to the next member of the container, past the comma. Returns false after moving past its
// end.
bool JsonPull::separate(char close) {
  const char found = peek();
  if (found == 0) fail_cut();
  if (found == close) {
    ++at_;
    first_.pop_back();
    return false;
  }
  if (first_.back()) {
    first_.back() = 0;
    return true;
  }
  if (found != ',') fail(std::string("a comma or ") + close + " is expected");
  ++at_;
  return true;
}

bool JsonPull::next_key(std::string_view& key) {
  if (!separate('}')) return false;
  if (peek() == 0) fail_cut();
  if (buffer_[at_] != '"') fail("a key is expected");
  // The colon is read first, so that the view stays valid.
  key = string();
  if (key.data() != scratch_.data()) {
    scratch_.assign(key);
    key = scratch_;
  }
  if (peek() == 0) fail_cut();
  if (buffer_[at_] != ':') fail("a colon is expected");
  ++at_;
  return true;
}

bool JsonPull::next_element() { return separate(']'); }

std::string_view JsonPull::string() {
  if (peek() == 0) fail_cut();
  if (buffer_[at_] != '"') fail("a string is expected");
  mark_ = ++at_;
  for (;;) {
    const char* from = buffer_.data();
    while (at_ < end_ && from[at_] != '"' && from[at_] != '\\') ++at_;
    if (at_ == end_) {
      if (!fill()) fail_cut();
    } else if (from[at_] == '"') {
      break;
    } else {
      return escaped();
    }
  }
  const std::string_view text(buffer_.data() + mark_, at_ - mark_);
  mark_ = kNothing;
  ++at_;
  return text;
}

std::string_view JsonPull::escaped() {
  at_ = mark_;
  mark_ = kNothing;
  scratch_.clear();
  for (;;) {
    char c = next();
    if (c == '"') return scratch_;
    if (scratch_.size() >= kLongest) fail("a single value has more than 16 MiB");
    if (c != '\\') {
      scratch_ += c;
      continue;
    }
    c = next();
    if (c == 'u') {
      unsigned code = 0;
      for (int i = 0; i < 4; ++i) {
        const char digit = next();
        unsigned value = 0;
        if (std::from_chars(&digit, &digit + 1, value, 16).ec != std::errc())
          fail("four hexadecimal digits are expected");
        code = code * 16 + value;
      }
      append_utf8(scratch_, code);
      continue;
    }
    constexpr std::string_view kWritten = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";
    const std::size_t which = kWritten.find(c);
    if (which == std::string_view::npos) fail("the escape is not valid JSON");
    scratch_ += kMeant[which];
  }
}

void JsonPull::take_token() {
  for (;;) {
    while (at_ < end_ && !ends_token(buffer_[at_])) ++at_;
    if (at_ < end_ || !fill()) return;
  }
}

std::string_view JsonPull::number() {
  const char found = peek();
  if (found == 0) fail_cut();
  if (found != '-' && (found < '0' || found > '9')) fail("a number is expected");
  mark_ = at_;
  take_token();
  const std::string_view text(buffer_.data() + mark_, at_ - mark_);
  mark_ = kNothing;
  return text;
}

std::string_view JsonPull::raw() {
  if (peek() == 0) fail_cut();
  mark_ = at_;
  skip();
  const std::string_view text(buffer_.data() + mark_, at_ - mark_);
  mark_ = kNothing;
  return text;
}

void JsonPull::skip_string() {
  ++at_;
  for (;;) {
    const char* from = buffer_.data();
    while (at_ < end_ && from[at_] != '"' && from[at_] != '\\') ++at_;
    if (at_ == end_) {
      if (!fill()) fail_cut();
    } else if (from[at_++] == '"') {
      return;
    } else {
      next();
    }
  }
}

void JsonPull::skip() {
  const char found = peek();
  if (found == 0) fail_cut();
  if (found == '"') return skip_string();
  if (found == '{' || found == '[') {
    ++at_;
    return skip_containers(1);
  }
  const std::size_t before = at_;
  const std::uint64_t passed = passed_;
  take_token();
  if (at_ + passed_ == before + passed) fail("a value is expected");
}

void JsonPull::leave() {
  skip_containers(1);
  first_.pop_back();
}

void JsonPull::skip_containers(std::size_t open) {
  while (open > 0) {
    const char* from = buffer_.data();
    while (at_ < end_ && from[at_] != '"' && (from[at_] | 0x20) != '{' && (from[at_] | 0x20) != '}')
      ++at_;
    if (at_ == end_) {
      if (!fill()) fail_cut();
      continue;
    }
    const char c = from[at_];
    if (c == '"') {
      skip_string();
      continue;
    }
    if ((c | 0x20) == '{')  // and '[', which differs in that bit only
      ++open;
    else
      --open;
    ++at_;
  }
}

void JsonPull::end() {
  if (peek() != 0)
    fail("the file continues after the end of its JSON value: split it if it holds several traces");
}

}  // namespace polyphony::traces
