// A folder of small images, 0.png to <count − 1>.png, of one size. The files are read at once (3 MB
// for 4,000 of easy-VQA), an image is decoded by libpng when it is first asked for and kept as
// 8-bit pixels, so that later epochs cost no decoding. Errors: InputError naming the file: missing,
// cut off, damaged, of another size.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "exec/torch_pch.h"

namespace polyphony::exec {

class ImageFolder {
 public:
  ImageFolder(const std::string& folder, std::size_t count, int size);
  // [3, size, size] float32 in [-1, 1]. Thread-safe.
  torch::Tensor image(std::size_t number) const;

 private:
  std::string path(std::size_t number) const;
  void decode(std::size_t number) const;

  std::string folder_;
  int size_;
  std::vector<std::string> files_;             // PNG, as on disk
  std::unique_ptr<std::once_flag[]> decoded_;  // by image
  mutable std::vector<std::vector<unsigned char>>
      pixels_;  // rows of red, green, blue; written once, under decoded_
};

}  // namespace polyphony::exec
