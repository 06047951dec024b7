// The safetensors format: named tensors in one file, readable by every training framework.
//   8 bytes: header length, little-endian | header: JSON, padded with spaces | data, little-endian,
//   row-major
//   {"__metadata__": {text: text}, "<name>": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0,
//   24]}, …}   offsets into the data
// Reading is strict: the tensors must cover the data without gaps, and shapes must agree with
// sizes. Anything else, including a file truncated at any byte, throws InputError.
// Source: the format description of github.com/huggingface/safetensors.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "exec/torch_pch.h"
#include "shared/checkpoint/safetensors_header.h"
#include "shared/files/files.h"

namespace polyphony::exec {

inline const std::atomic<bool> kNeverGivenUp{false};

struct NamedTensor {
  std::string name;
  torch::Tensor tensor;
};

// Writes the tensors' data in the given order. The file is synced to disk before it returns. Throws
// std::runtime_error between two tensors once `given_up` is true.
FileDigest write_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                             const std::map<std::string, std::string>& metadata,
                             const std::atomic<bool>& given_up = kNeverGivenUp);

// An open file. The constructor checks its header; data are read tensor by tensor.
class Safetensors {
 public:
  explicit Safetensors(const std::string& path);

  const std::map<std::string, SafetensorsHeader::Entry>& entries() const { return header_.entries; }
  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }
  torch::Tensor read(const std::string& name) const;  // a new CPU tensor

 private:
  std::string path_;
  SafetensorsHeader header_;
};

// Return the format's name of a number format, e.g. "F32", and the number format of a name.
std::string dtype_name(torch::Dtype dtype);
torch::Dtype dtype_named(const std::string& name);

}  // namespace polyphony::exec
