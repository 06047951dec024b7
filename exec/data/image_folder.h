// A folder of small images of one size, 0.png to <count − 1>.png. All files are read in the
// constructor (3 MB for the 4,000 images of easy-VQA). An image is decoded by libpng on first use
// and kept as 8-bit pixels, so later epochs do not decode again. Throws InputError naming the file
// if it is missing, truncated, damaged or of another size.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "exec/torch_pch.h"

namespace polyphony::exec {

// What to do about a damaged file of a data set.
inline constexpr const char* kRestore = "unpack the data set again";

class ImageFolder {
 public:
  ImageFolder(const std::string& folder, std::size_t count, int size);
  // Returns image `number`: [3, size, size] float32 in [-1, 1]. Thread-safe.
  torch::Tensor image(std::size_t number) const;

 private:
  std::string path(std::size_t number) const;
  void decode(std::size_t number) const;

  std::string folder_;
  int size_;
  std::vector<std::string> files_;             // PNG, as on disk
  std::unique_ptr<std::once_flag[]> decoded_;  // per image
  mutable std::vector<std::vector<unsigned char>>
      pixels_;  // rows of RGB; written once, under decoded_
};

}  // namespace polyphony::exec
