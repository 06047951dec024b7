#include "exec/checkpoint/safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "shared/error.h"
#include "shared/text/strict_json.h"

namespace polyphony::exec {
namespace {

constexpr std::int64_t kLongestHeader = 100'000'000;  // the reference reader's limit
constexpr const char* kMetadata = "__metadata__";
constexpr const char* kDamaged =
    "the file is damaged or was cut off: restore it, or use another checkpoint";

struct DtypeName {
  torch::Dtype dtype;
  const char* name;
};
constexpr std::array<DtypeName, 7> kDtypes{{{torch::kFloat32, "F32"},
                                            {torch::kFloat64, "F64"},
                                            {torch::kBFloat16, "BF16"},
                                            {torch::kFloat16, "F16"},
                                            {torch::kInt64, "I64"},
                                            {torch::kInt32, "I32"},
                                            {torch::kUInt8, "U8"}}};

torch::Dtype dtype_named(const std::string& text) {
  for (const DtypeName& entry : kDtypes)
    if (text == entry.name) return entry.dtype;
  POLYPHONY_CHECK(false, "the header's form lets \"" << text << "\" pass");
}

std::vector<std::string> dtype_names() {
  std::vector<std::string> names;
  for (const DtypeName& entry : kDtypes) names.emplace_back(entry.name);
  return names;
}

const ObjectForm& header_form() {
  constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();
  static const ObjectForm metadata{"metadata", "free text", {}, {text_form("…")}};
  static const ObjectForm tensor{
      "tensor",
      "where a tensor lies",
      {{"dtype", choice_form(dtype_names()), "number format", true},
       {"shape", list_form(integer_form(0, kAny), 0, 64), "rows, columns, …", true},
       {"data_offsets", list_form(integer_form(0, kAny), 2, 2), "begin and end, bytes", true}},
      {}};
  static const ObjectForm header{"safetensors",
                                 "header",
                                 {{kMetadata, object_form(metadata), "free text"}},
                                 {object_form(tensor)}};
  return header;
}

// Bytes of a tensor; nothing when they, or the strides of an empty one, do not fit into 63 bits.
std::optional<std::int64_t> size_of(const Safetensors::Entry& entry) {
  auto size = static_cast<std::int64_t>(torch::elementSize(entry.dtype));
  bool empty = false;
  for (const std::int64_t dimension : entry.shape) {
    empty |= dimension == 0;
    if (__builtin_mul_overflow(size, std::max<std::int64_t>(1, dimension), &size)) return {};
  }
  return empty ? 0 : size;
}

Safetensors::Entry read_entry(const JsonValue& value) {
  Safetensors::Entry entry;
  entry.dtype = dtype_named(value.at("dtype").text());
  const JsonValue shape = value.at("shape"), offsets = value.at("data_offsets");
  for (std::size_t i = 0; i < shape.size(); ++i) entry.shape.push_back(shape.at(i).integer());
  entry.begin = offsets.at(0).integer();
  entry.end = offsets.at(1).integer();
  const std::optional<std::int64_t> size = size_of(entry);
  if (!size || entry.end < entry.begin || entry.end - entry.begin != *size)
    value.refuse("its shape and its data_offsets do not agree", kDamaged);
  return entry;
}

// The tensors, in the order of their data, must follow one another from 0 to `data_size`.
void check_cover(const std::string& path, const std::map<std::string, Safetensors::Entry>& entries,
                 std::int64_t data_size) {
  std::vector<std::pair<std::int64_t, std::int64_t>> spans;
  for (const auto& [name, entry] : entries) spans.emplace_back(entry.begin, entry.end);
  std::sort(spans.begin(), spans.end());
  std::int64_t reached = 0;
  for (const auto& [begin, end] : spans) {
    if (begin != reached)
      throw InputError(
          path, "",
          "tensors leave a hole or overlap at byte " + std::to_string(reached) + " of the data",
          kDamaged);
    reached = end;
  }
  if (reached != data_size)
    throw InputError(path, "",
                     "holds " + std::to_string(data_size) + " bytes of data, its header names " +
                         std::to_string(reached),
                     kDamaged);
}

}  // namespace

std::string dtype_name(torch::Dtype dtype) {
  for (const DtypeName& entry : kDtypes)
    if (entry.dtype == dtype) return entry.name;
  POLYPHONY_CHECK(false, "safetensors has no name for " << torch::toString(dtype));
}

FileDigest write_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                             const std::map<std::string, std::string>& metadata) {
  nlohmann::json header;
  if (!metadata.empty()) header[kMetadata] = metadata;
  std::int64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    POLYPHONY_CHECK(name != kMetadata && !header.contains(name), name << " stands twice");
    const auto size = static_cast<std::int64_t>(tensor.nbytes());
    header[name] = {{"dtype", dtype_name(tensor.scalar_type())},
                    {"shape", tensor.sizes().vec()},
                    {"data_offsets", {offset, offset + size}}};
    offset += size;
  }
  std::string text = tensors.empty() && metadata.empty() ? "{}" : header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // aligns the data
  const std::uint64_t length = text.size();
  SyncedFile file(path);
  file.write(&length, sizeof length);
  file.write(text.data(), text.size());
  for (const auto& [name, tensor] : tensors) {
    const torch::Tensor data = tensor.detach().cpu().contiguous();
    if (data.numel() > 0) file.write(data.const_data_ptr(), data.nbytes());
  }
  return file.finish();
}

Safetensors::Safetensors(const std::string& path) : path_(path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file)
    throw InputError(path, "", "cannot be opened", "restore the file, or use another checkpoint");
  const auto size = static_cast<std::int64_t>(file.tellg());
  file.seekg(0);
  std::uint64_t length = 0;
  if (size >= 8) file.read(reinterpret_cast<char*>(&length), sizeof length);
  if (!file || size < 8 || length > static_cast<std::uint64_t>(size - 8) || length > kLongestHeader)
    throw InputError(path, "",
                     "is no whole safetensors file: its header does not fit into " +
                         std::to_string(size) + " bytes",
                     kDamaged);
  std::string text(static_cast<std::size_t>(length), '\0');
  file.read(text.data(), static_cast<std::streamsize>(length));
  if (!file) throw InputError(path, "", "cannot be read", kDamaged);
  data_begin_ = 8 + static_cast<std::int64_t>(length);

  const JsonValue header = JsonValue::parse(text, path);
  header.check(object_form(header_form()));
  for (const std::string& key : header.keys()) {
    const JsonValue value = header.at(key);
    if (key != kMetadata) {
      entries_[key] = read_entry(value);
    } else {
      for (const std::string& name : value.keys()) metadata_[name] = value.at(name).text();
    }
  }
  check_cover(path, entries_, size - data_begin_);
}

torch::Tensor Safetensors::read(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end())
    throw InputError(path_, "", "holds no tensor \"" + name + "\"", kDamaged);
  const Entry& entry = found->second;
  torch::Tensor tensor = torch::empty(entry.shape, entry.dtype);
  std::ifstream file(path_, std::ios::binary);
  file.seekg(data_begin_ + entry.begin);
  file.read(static_cast<char*>(tensor.data_ptr()), entry.end - entry.begin);
  if (!file) throw InputError(path_, "", "cannot be read at tensor \"" + name + "\"", kDamaged);
  return tensor;
}

}  // namespace polyphony::exec
