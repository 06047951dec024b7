#include "shared/checkpoint/write_safetensors_json.h"

#include <nlohmann/json.hpp>

#include "shared/checkpoint/safetensors_header.h"
#include "shared/checkpoint/tensor_size.h"
#include "shared/error.h"

namespace polyphony {

std::int64_t TensorToWrite::bytes() const { return element_count(shape) * element_bytes(format); }

FileDigest write_safetensors(const std::string& path, const std::vector<TensorToWrite>& tensors,
                             const std::map<std::string, std::string>& metadata,
                             const WriteData& data) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header[kSafetensorsMetadata] = metadata;
  std::int64_t offset = 0;
  for (const TensorToWrite& tensor : tensors) {
    POLYPHONY_CHECK(tensor.name != kSafetensorsMetadata && !header.contains(tensor.name),
                    tensor.name << " occurs twice");
    const std::int64_t end = offset + tensor.bytes();
    header[tensor.name] = {
        {"dtype", tensor.format}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // aligns the data
  const std::uint64_t length = text.size();
  SyncedFile file(path);
  file.write(&length, sizeof length);
  file.write(text.data(), text.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) data(i, file);
  return file.finish();
}

}  // namespace polyphony
