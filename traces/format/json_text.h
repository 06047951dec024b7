// Writes JSON piece by piece into one text, without building a tree: traces have hundreds of
// megabytes.
#pragma once

#include <algorithm>
#include <charconv>
#include <concepts>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace polyphony::traces {

class JsonText {
 public:
  void reserve(std::size_t bytes) { bytes_.reserve(bytes); }
  JsonText& operator<<(std::string_view text) {
    bytes_.append(text);
    return *this;
  }
  template <std::integral Integer>
  JsonText& operator<<(Integer value) {
    char digits[24];
    bytes_.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
    return *this;
  }
  JsonText& quoted(const std::string& text) {
    const bool plain = std::all_of(text.begin(), text.end(), [](char c) {
      return c >= ' ' && c <= '~' && c != '"' && c != '\\';
    });
    if (plain) return *this << "\"" << text << "\"";
    return *this << nlohmann::json(text).dump(-1, ' ', false,
                                              nlohmann::json::error_handler_t::replace);
  }
  // Appends nanoseconds as microseconds with three decimals. Exact: uses no floating-point
  // arithmetic.
  JsonText& microseconds(std::int64_t ns) {
    const std::int64_t size = ns < 0 ? -ns : ns, rest = size % 1000;
    return *this << (ns < 0 ? "-" : "") << size / 1000
                 << (rest < 10    ? ".00"
                     : rest < 100 ? ".0"
                                  : ".")
                 << rest;
  }
  bool ends_with(std::string_view text) const { return bytes_.ends_with(text); }
  void drop(std::size_t bytes) { bytes_.resize(bytes_.size() - bytes); }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

}  // namespace polyphony::traces
