// Writes a safetensors file (exec/checkpoint/safetensors.h describes the format).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "shared/files/files.h"

namespace polyphony {

struct TensorToWrite {
  std::string name;
  std::string format;  // a name of kSafetensorsFormats
  std::vector<std::int64_t> shape;
  std::int64_t bytes() const;
};
// Writes the data of the tensor at a position of the list, exactly bytes() of it.
using WriteData = std::function<void(std::size_t position, SyncedFile& file)>;

// Writes the tensors in the given order. The file is synced to disk before it returns. Throws
// std::runtime_error if the disk is full; fails a CHECK if a name occurs twice.
FileDigest write_safetensors(const std::string& path, const std::vector<TensorToWrite>& tensors,
                             const std::map<std::string, std::string>& metadata,
                             const WriteData& data);

}  // namespace polyphony
