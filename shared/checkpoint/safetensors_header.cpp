#include "shared/checkpoint/safetensors_header.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>

#include "shared/error.h"
#include "shared/text/strict_json.h"

namespace polyphony {
namespace {

constexpr std::int64_t kLongestHeader = 100'000'000;  // the reference reader's limit

std::vector<std::string> format_names() {
  std::vector<std::string> names;
  for (const SafetensorsFormat& format : kSafetensorsFormats) names.emplace_back(format.name);
  return names;
}

const ObjectForm& header_form() {
  constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();
  static const ObjectForm metadata{"metadata", "free text", {}, {text_form("…")}};
  static const ObjectForm tensor{
      "tensor",
      "a tensor and the position of its data",
      {{"dtype", choice_form(format_names()), "number format", true},
       {"shape", list_form(integer_form(0, kAny), 0, 64), "rows, columns, …", true},
       {"data_offsets", list_form(integer_form(0, kAny), 2, 2), "begin and end in bytes", true}},
      {}};
  static const ObjectForm header{"safetensors",
                                 "header",
                                 {{kSafetensorsMetadata, object_form(metadata), "free text"}},
                                 {object_form(tensor)}};
  return header;
}

// Returns the bytes of a tensor; nothing if they, or the strides of an empty one, do not fit into
// 63 bits.
std::optional<std::int64_t> size_of(const SafetensorsHeader::Entry& entry) {
  std::int64_t size = 0;
  for (const SafetensorsFormat& format : kSafetensorsFormats)
    if (entry.format == format.name) size = format.bytes;
  bool empty = false;
  for (const std::int64_t dimension : entry.shape) {
    empty |= dimension == 0;
    if (__builtin_mul_overflow(size, std::max<std::int64_t>(1, dimension), &size)) return {};
  }
  return empty ? 0 : size;
}

SafetensorsHeader::Entry read_entry(const JsonValue& value) {
  SafetensorsHeader::Entry entry;
  entry.format = value.at("dtype").text();
  const JsonValue shape = value.at("shape"), offsets = value.at("data_offsets");
  for (std::size_t i = 0; i < shape.size(); ++i) entry.shape.push_back(shape.at(i).integer());
  entry.begin = offsets.at(0).integer();
  entry.end = offsets.at(1).integer();
  const std::optional<std::int64_t> size = size_of(entry);
  if (!size || entry.end < entry.begin || entry.end - entry.begin != *size)
    value.refuse("its shape and its data_offsets do not agree", kSafetensorsDamaged);
  return entry;
}

// Checks that the tensors, in the order of their data, are contiguous from 0 to `data_size`.
void check_cover(const std::string& path,
                 const std::map<std::string, SafetensorsHeader::Entry>& entries,
                 std::int64_t data_size) {
  std::vector<std::pair<std::int64_t, std::int64_t>> spans;
  for (const auto& [name, entry] : entries) spans.emplace_back(entry.begin, entry.end);
  std::sort(spans.begin(), spans.end());
  std::int64_t reached = 0;
  for (const auto& [begin, end] : spans) {
    if (begin != reached)
      throw InputError(
          path, "",
          "tensors leave a gap or overlap at byte " + std::to_string(reached) + " of the data",
          kSafetensorsDamaged);
    reached = end;
  }
  if (reached != data_size)
    throw InputError(path, "",
                     "has " + std::to_string(data_size) +
                         " bytes of data, but its header describes " + std::to_string(reached),
                     kSafetensorsDamaged);
}

}  // namespace

SafetensorsHeader read_safetensors_header(const std::string& path) {
  SafetensorsHeader result;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file)
    throw InputError(path, "", "cannot be opened", "restore the file, or use another checkpoint");
  const auto size = static_cast<std::int64_t>(file.tellg());
  file.seekg(0);
  std::uint64_t length = 0;
  if (size >= 8) file.read(reinterpret_cast<char*>(&length), sizeof length);
  if (!file || size < 8 || length > static_cast<std::uint64_t>(size - 8) || length > kLongestHeader)
    throw InputError(path, "",
                     "is not a complete safetensors file: its header does not fit into " +
                         std::to_string(size) + " bytes",
                     kSafetensorsDamaged);
  std::string text(static_cast<std::size_t>(length), '\0');
  file.read(text.data(), static_cast<std::streamsize>(length));
  if (!file) throw InputError(path, "", "cannot be read", kSafetensorsDamaged);
  result.data_begin = 8 + static_cast<std::int64_t>(length);

  const JsonValue header = JsonValue::parse(text, path);
  header.check(object_form(header_form()));
  for (const std::string& key : header.keys()) {
    const JsonValue value = header.at(key);
    if (key != kSafetensorsMetadata) {
      result.entries[key] = read_entry(value);
    } else {
      for (const std::string& name : value.keys()) result.metadata[name] = value.at(name).text();
    }
  }
  check_cover(path, result.entries, size - result.data_begin);
  return result;
}

}  // namespace polyphony
