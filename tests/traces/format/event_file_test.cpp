#include "traces/format/event_file.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

using namespace std::string_literals;

namespace polyphony::traces {
namespace {

// The fields of a Protocol Buffers message, by number, as the bytes that follow their keys. A
// reader of its own, which shares no code with the writer.
using Fields = std::multimap<int, std::string>;

template <class Number>
Number number_of(const std::string& bytes) {  // this machine is little-endian
  Number value{};
  REQUIRE(bytes.size() == sizeof value);
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

std::uint64_t take_varint(const std::string& bytes, std::size_t& at) {
  std::uint64_t value = 0;
  for (unsigned shift = 0;; shift += 7) {
    REQUIRE(at < bytes.size());
    REQUIRE(shift < 64);
    const auto byte = static_cast<unsigned char>(bytes[at++]);
    value |= std::uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
}

Fields fields_of(const std::string& message) {
  Fields fields;
  for (std::size_t at = 0; at < message.size();) {
    const std::uint64_t key = take_varint(message, at);
    const std::size_t begin = at;
    std::size_t size = 0;
    switch (key & 7) {
      case 0:
        take_varint(message, at);
        break;
      case 1:
        size = 8;
        break;
      case 2:
        size = take_varint(message, at);
        break;
      case 5:
        size = 4;
        break;
      default:
        FAIL("unknown wire type");
    }
    const std::size_t from = (key & 7) == 0 ? begin : at;
    at += size;
    REQUIRE(at <= message.size());
    fields.emplace(static_cast<int>(key >> 3), message.substr(from, at - from));
  }
  return fields;
}

std::string only(const Fields& fields, int number) {
  REQUIRE(fields.count(number) == 1);
  return fields.find(number)->second;
}

// CRC-32C bit by bit, then masked as the TFRecord format defines it.
std::uint32_t check_of(const std::string& bytes) {
  std::uint32_t crc = 0xffffffff;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc & 1 ? (crc >> 1) ^ 0x82f63b78 : crc >> 1;
  }
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8;
}

// Returns the events of a file; nothing if a record is truncated or does not match its checksums.
std::optional<std::vector<Fields>> events_of(std::string rest) {
  std::vector<Fields> events;
  while (!rest.empty()) {
    if (rest.size() < 12) return {};
    const std::string length = rest.substr(0, 8);
    if (number_of<std::uint32_t>(rest.substr(8, 4)) != check_of(length)) return {};
    const auto size = number_of<std::uint64_t>(length);
    if (rest.size() - 12 < size + 4) return {};
    const std::string event = rest.substr(12, size);
    if (number_of<std::uint32_t>(rest.substr(12 + size, 4)) != check_of(event)) return {};
    events.push_back(fields_of(event));
    rest.erase(0, 16 + size);
  }
  return events;
}

}  // namespace

TEST_CASE("CRC-32C has the published values") {
  CHECK(crc32c("") == 0);
  CHECK(crc32c("123456789") == 0xe3069283);  // the check value of CRC catalogs
  // RFC 3720, B.4, where the bytes of each CRC are printed in reverse order.
  CHECK(crc32c(std::string(32, '\0')) == 0x8a9136aa);
  CHECK(crc32c(std::string(32, '\xff')) == 0x62a8ab43);
}

TEST_CASE("the bytes of an event are those of the Protocol Buffers wire format") {
  const Scalar scalar{"a", 2.0f};
  const std::string record = event_record(300, 1.5, {&scalar, 1});
  // wall_time: key 1·8 + 1, then 1.5 = 0x3ff8000000000000. step: key 2·8, then 300 = 0b10'0101100.
  // summary: key 5·8 + 2, 10 bytes: one value (key 1·8 + 2) of 8 bytes. In it the tag (key 1·8 + 2)
  // of 1 byte and the float 2 = 0x40000000 (key 2·8 + 5).
  const std::string event =
      "\x09\0\0\0\0\0\0\xf8\x3f\x10\xac\x02\x2a\x0a\x0a\x08\x0a\x01\x61\x15\0\0\0\x40"s;
  CHECK(record.size() == 8 + 4 + event.size() + 4);
  CHECK(record.substr(0, 8) == "\x18\0\0\0\0\0\0\0"s);  // 9 + 3 + 12 bytes
  CHECK(record.substr(12, event.size()) == event);
}

TEST_CASE("a file is read back as it was written, also with NaN") {
  const std::vector<Scalar> first{{"train/loss", 2.5f}, {"train/gradient_norm", 0.75f}},
      second{{"train/loss", std::numeric_limits<float>::quiet_NaN()},
             {"train/gradient_norm", std::numeric_limits<float>::infinity()}};
  const std::int64_t late = std::int64_t{1} << 40;
  const auto events = events_of(event_file_head(1000.25, 0) + event_record(0, 1001.5, first) +
                                event_record(late, 1002.75, second));
  REQUIRE(events);
  REQUIRE(events->size() == 4);
  CHECK(number_of<double>(only((*events)[0], 1)) == 1000.25);
  CHECK(only((*events)[0], 3) == "brain.Event:2");
  CHECK(number_of<double>(only((*events)[3], 1)) == 1002.75);

  std::size_t at = 0;
  CHECK(take_varint(only((*events)[2], 2), at) == 0);
  at = 0;
  CHECK(take_varint(only((*events)[3], 2), at) == static_cast<std::uint64_t>(late));
  const auto values_of = [](const Fields& event) {
    std::map<std::string, float> values;
    const Fields summary = fields_of(only(event, 5));
    for (const auto& [number, value] : summary) {
      CHECK(number == 1);
      values[only(fields_of(value), 1)] = number_of<float>(only(fields_of(value), 2));
    }
    return values;
  };
  CHECK(values_of((*events)[2]) ==
        std::map<std::string, float>{{"train/loss", 2.5f}, {"train/gradient_norm", 0.75f}});
  auto values = values_of((*events)[3]);
  CHECK(values.size() == 2);
  CHECK(std::isnan(values["train/loss"]));
  CHECK(values["train/gradient_norm"] == std::numeric_limits<float>::infinity());
}

TEST_CASE("a file begins with its version and the start of a session") {
  const auto events = events_of(event_file_head(1000, 40));
  REQUIRE(events);
  REQUIRE(events->size() == 2);
  CHECK(only((*events)[0], 3) == "brain.Event:2");
  CHECK((*events)[0].size() == 2);  // the other field is the wall time
  std::size_t at = 0;
  CHECK(take_varint(only((*events)[1], 2), at) == 40);
  CHECK(only((*events)[1], 7) == "\x08\x01");  // status: key 1·8, START = 1
}

TEST_CASE("truncation and damage are detected at every byte") {
  const Scalar scalar{"train/loss", 2.5f};
  const std::string head = event_file_head(1000, 0),
                    whole = head + event_record(7, 1001, {&scalar, 1});
  // A file may end after a record. That of the version has 16 bytes for its length and checksums, 9
  // for the wall time and 15 for the version.
  for (std::size_t size = 1; size < whole.size(); ++size)
    CHECK(events_of(whole.substr(0, size)).has_value() == (size == 40 || size == head.size()));
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    CHECK_FALSE(events_of(damaged).has_value());
  }
}

TEST_CASE("names of event files sort by time") {
  CHECK(event_file_name(1700000000, "node-3") == "events.out.tfevents.1700000000.node-3.polyphony");
  CHECK(event_file_name(999999999, "z") < event_file_name(1000000000, "a"));
}

}  // namespace polyphony::traces
