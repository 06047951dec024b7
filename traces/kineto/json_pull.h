// JSON read from front to back, value by value, in bounded memory: whoever reads asks for what comes
// next, and skips what it does not need. (A document of 100 MB costs ten times that as a tree.)
//   Values that are skipped are not looked into further than their strings and brackets need.
//   Views hold until the next call.
// Errors: InputError with the place that place() names, and the byte.
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
  // `place`: a JSON pointer to what is being read, for messages.
  JsonPull(ByteSource bytes, std::string file, std::function<std::string()> place);

  // The first byte of the next value, or a bracket that closes; 0: the end.
  char peek();
  void begin_object() { begin('{'); }
  void begin_array() { begin('['); }
  bool next_key(std::string_view& key);  // false: the object is over
  bool next_element();                   // false: the array is over
  std::string_view string();             // unescaped
  std::string_view number();             // as written
  std::string_view raw();                // any value, as written
  void skip();                           // any value
  void leave();                          // the rest of the container, and its end
  void end();                            // nothing may follow but blanks

  [[noreturn]] void fail(const std::string& what) const;
  [[noreturn]] void fail_cut() const;  // the file ends too early

 private:
  bool fill();
  char next();  // the next byte, whatever it is; an error at the end
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
  std::size_t mark_;              // what is kept from there on; npos: nothing
  std::uint64_t passed_ = 0;      // bytes before the buffer
  std::vector<char> first_;       // of every open container: nothing in it was read yet
};

}  // namespace polyphony::traces
