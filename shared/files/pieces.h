// Reads a file in blocks, for files that are too large to keep in memory.
//   A pipe that delivers nothing for `silence` is an error, as in whole.h.
// Errors: as in whole.h.
#pragma once

#include <optional>
#include <string>

#include "shared/files/descriptor.h"
#include "shared/units.h"

namespace polyphony {

class FilePieces {
 public:
  explicit FilePieces(const std::string& path, const std::string& hint = "check the path",
                      Seconds silence = Seconds(60));
  // Reads up to `most` bytes into `into` and returns their number; 0 at the end of the file.
  std::size_t read(char* into, std::size_t most);
  // Returns the size of a regular file; nothing for other files, such as pipes.
  std::optional<Bytes> size() const { return size_; }

 private:
  void await();

  std::string path_, hint_;
  Seconds silence_;
  Descriptor file_;
  std::optional<Bytes> size_;
};

}  // namespace polyphony
