// Reads JSON from front to back, value by value, in bounded memory: the caller asks for the next
// value, and skips values that it does not need. (As a tree, a document of 100 MB takes ten times
// as much.)
//
// Skipped values are only checked as far as finding their end needs (strings and brackets).
// Returned views are valid until the next call. Throws InputError with the place from place() and
// the byte.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/kineto/bytes.h"

namespace polyphony::traces {

class JsonPull {
 public:
  // `place` returns a JSON pointer to the value being read, for messages.
  JsonPull(ByteSource bytes, std::string file, std::function<std::string()> place);

  // Returns the first byte of the next value, or a closing bracket; 0 at the end.
  char peek();
  void begin_object() { begin('{'); }
  void begin_array() { begin('['); }
  bool next_key(std::string_view& key);  // false at the end of the object
  bool next_element();                   // false at the end of the array
  std::string_view string();             // reads a string, unescaped
  std::string_view number();             // reads a number, as written
  std::string_view raw();                // reads any value, as written
  void skip();                           // skips any value
  void leave();                          // skips the rest of the container, and its end
  void end();                            // checks that only white space follows

  [[noreturn]] void fail(const std::string& what) const;
  [[noreturn]] void fail_cut() const;  // the file ends too early

 private:
  bool fill();
  char next();  // reads the next byte; fails at the end
  void begin(char open);
  bool separate(char close);
  void skip_string();
  void skip_containers(std::size_t open);
  void take_token();
  std::string_view escaped();

  ByteSource bytes_;
  std::string file_;
  std::function<std::string()> place_;
  std::string buffer_, scratch_;
  std::size_t at_ = 0, end_ = 0;  // in the buffer
  std::size_t mark_;              // bytes from here on are kept; npos: none
  std::uint64_t passed_ = 0;      // bytes before the buffer
  std::vector<char> first_;       // by open container: whether nothing in it was read yet
};

}  // namespace polyphony::traces
