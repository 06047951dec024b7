// A place in a tokenizer.json, for error messages of one line.
#pragma once

#include <string>
#include <string_view>

#include "shared/error.h"

namespace polyphony::tokenizing {

struct Place {
  std::string file;
  std::string pointer;  // RFC 6901

  Place at(std::string_view key) const {
    std::string token;
    for (const char c : key)
      if (c == '~')
        token += "~0";
      else if (c == '/')
        token += "~1";
      else
        token += c;
    return {file, pointer + "/" + token};
  }
  Place at(std::size_t index) const { return at(std::to_string(index)); }

  // Throws the InputError. Control characters of the file's tokens are shown as "?".
  [[noreturn]] void refuse(const std::string& what, const std::string& hint) const {
    throw InputError(file, shown(pointer), shown(what), shown(hint));
  }

 private:
  static std::string shown(std::string text) {
    for (char& c : text)
      if (static_cast<unsigned char>(c) < ' ' || c == 0x7F) c = '?';
    return text;
  }
};

}  // namespace polyphony::tokenizing
