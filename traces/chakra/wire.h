// Writes the Protocol Buffers wire format, as far as execution traces need it: varints, strings,
// messages and packed numbers.
//
//   field   key (field number · 8 + wire type) as a varint, then a varint (type 0), or a length and
//           that many bytes (type 2)
//   varint  seven bits per byte, lowest first; the top bit is set if more bytes follow
//
// Source: protobuf.dev, "Encoding".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace polyphony::traces {

class WireMessage {
 public:
  WireMessage& number(int field, std::uint64_t value) {
    key(field, 0);
    varint(value);
    return *this;
  }
  WireMessage& text(int field, std::string_view value) {
    key(field, 2);
    varint(value.size());
    bytes_.append(value);
    return *this;
  }
  WireMessage& message(int field, const WireMessage& value) { return text(field, value.bytes_); }
  WireMessage& packed(int field, const std::vector<std::uint64_t>& values) {
    if (values.empty()) return *this;
    WireMessage inside;
    for (const std::uint64_t value : values) inside.varint(value);
    return message(field, inside);
  }
  // Appends the message to a stream: its length, then its bytes.
  void append_to(std::string& stream) const {
    WireMessage length;
    length.varint(bytes_.size());
    stream += length.bytes_;
    stream += bytes_;
  }

 private:
  void key(int field, std::uint64_t type) { varint(static_cast<std::uint64_t>(field) << 3 | type); }
  void varint(std::uint64_t value) {
    for (; value > 0x7f; value >>= 7) bytes_.push_back(static_cast<char>(value | 0x80));
    bytes_.push_back(static_cast<char>(value));
  }

  std::string bytes_;
};

}  // namespace polyphony::traces
