// The tensors of a folder in Hugging Face layout: one model.safetensors, or several files that
// model.safetensors.index.json lists ({"weight_map": {"<tensor>": "<file>"}}).
//
// The constructor reads headers only. Data are mapped into memory when a tensor is first asked for,
// so a rank reads from the disk only the pages with elements that it copies. Files with pickled
// objects (.bin, .pt, .pth, .ckpt) are never opened: reading them can run any code.
// Source: the file layout that huggingface/transformers writes.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "shared/checkpoint/safetensors_header.h"
#include "shared/files/mapped_file.h"

namespace polyphony {

struct StoredTensor {
  std::string file;    // path
  std::string format;  // "F32", "BF16", …
  std::vector<std::int64_t> shape;
  std::int64_t begin = 0, end = 0;  // of the data in the file, in bytes
};

class TensorFolder {
 public:
  // Throws InputError that names the file, if the folder has no safetensors files, or a file or the
  // index is damaged or they contradict each other.
  explicit TensorFolder(const std::string& folder);
  ~TensorFolder();
  TensorFolder(TensorFolder&&) noexcept;
  TensorFolder& operator=(TensorFolder&&) noexcept;

  const std::string& folder() const { return folder_; }
  const std::map<std::string, StoredTensor>& tensors() const { return tensors_; }
  const StoredTensor* find(const std::string& name) const;
  // Returns the first byte of a tensor's data. Throws InputError if its file cannot be mapped.
  const std::byte* data(const StoredTensor& tensor) const;
  // Takes the pages of a tensor's data off this process's account. The system keeps them for other
  // processes, and for the next call of data(), as long as it has memory.
  void let_go(const StoredTensor& tensor) const;

 private:
  void add_file(const std::string& path);

  std::string folder_;
  std::map<std::string, StoredTensor> tensors_;
  mutable std::map<std::string, std::unique_ptr<MappedFile>> files_;  // by path
};

}  // namespace polyphony
