#include "traces/format/event_file.h"

#include <array>
#include <bit>
#include <cstddef>

namespace polyphony::traces {
namespace {

constexpr std::string_view kVersion = "brain.Event:2";  // event.proto, Event.file_version
constexpr std::uint64_t kSessionStart = 1;              // event.proto, SessionLog.SessionStatus

// The effect of each low byte on the CRC. The polynomial is that of RFC 3720 with its bits
// reversed, because the lowest bit is processed first.
constexpr std::array<std::uint32_t, 256> kCrcTable = [] {
  constexpr std::uint32_t kPolynomial = 0x82f63b78;
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? kPolynomial : 0);
    table[byte] = crc;
  }
  return table;
}();

template <class Number>
void put_little_endian(std::string& bytes, Number value) {
  for (std::size_t i = 0; i < sizeof value; ++i)
    bytes.push_back(static_cast<char>(value >> (8 * i) & 0xff));
}

void put_varint(std::string& bytes, std::uint64_t value) {
  for (; value > 0x7f; value >>= 7) bytes.push_back(static_cast<char>(value | 0x80));
  bytes.push_back(static_cast<char>(value));
}

// Wire types of the fields that events have.
enum class Wire : std::uint64_t { varint = 0, fixed64 = 1, length = 2, fixed32 = 5 };

void put_key(std::string& bytes, std::uint64_t field, Wire type) {
  put_varint(bytes, field << 3 | static_cast<std::uint64_t>(type));
}
void put(std::string& bytes, std::uint64_t field, std::uint64_t value) {
  put_key(bytes, field, Wire::varint);
  put_varint(bytes, value);
}
void put(std::string& bytes, std::uint64_t field, double value) {
  put_key(bytes, field, Wire::fixed64);
  put_little_endian(bytes, std::bit_cast<std::uint64_t>(value));
}
void put(std::string& bytes, std::uint64_t field, float value) {
  put_key(bytes, field, Wire::fixed32);
  put_little_endian(bytes, std::bit_cast<std::uint32_t>(value));
}
void put(std::string& bytes, std::uint64_t field, std::string_view value) {
  put_key(bytes, field, Wire::length);
  put_varint(bytes, value.size());
  bytes += value;
}

std::uint32_t masked_crc(std::string_view bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xa282ead8;
}

std::string framed(std::string_view event) {
  std::string record;
  put_little_endian(record, std::uint64_t{event.size()});
  put_little_endian(record, masked_crc(record));
  record += event;
  put_little_endian(record, masked_crc(event));
  return record;
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = ~std::uint32_t{0};
  for (const char byte : bytes)
    crc = crc >> 8 ^ kCrcTable[(crc ^ static_cast<unsigned char>(byte)) & 0xff];
  return ~crc;
}

std::string event_file_name(std::int64_t seconds, std::string_view host) {
  constexpr std::size_t kDigits = 10;  // as TensorFlow writes them: names sort by time
  std::string digits = std::to_string(seconds);
  if (digits.size() < kDigits) digits.insert(0, kDigits - digits.size(), '0');
  return "events.out.tfevents." + digits + "." + std::string(host) + ".polyphony";
}

std::string event_file_head(double wall_time, std::int64_t first) {
  std::string version;
  put(version, 1, wall_time);
  put(version, 3, kVersion);
  std::string log, start;
  put(log, 1, kSessionStart);
  put(start, 1, wall_time);
  put(start, 2, static_cast<std::uint64_t>(first));
  put(start, 7, std::string_view(log));
  return framed(version) + framed(start);
}

std::string event_record(std::int64_t step, double wall_time, std::span<const Scalar> scalars) {
  std::string summary;
  for (const Scalar& scalar : scalars) {
    std::string value;
    put(value, 1, scalar.tag);
    put(value, 2, scalar.value);
    put(summary, 1, std::string_view(value));
  }
  std::string event;
  put(event, 1, wall_time);
  put(event, 2, static_cast<std::uint64_t>(step));
  put(event, 5, std::string_view(summary));
  return framed(event);
}

}  // namespace polyphony::traces
