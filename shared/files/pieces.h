// A file read piece by piece, for what is larger than memory is worth.
//   A pipe that says nothing for so long ends the reading, as whole.h has it.
// Errors: as whole.h.
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
  // Bytes read into `into`; 0: the end.
  std::size_t read(char* into, std::size_t most);
  // Of a regular file; what is none has none until it was read.
  std::optional<Bytes> size() const { return size_; }

 private:
  void await();

  std::string path_, hint_;
  Seconds silence_;
  Descriptor file_;
  std::optional<Bytes> size_;
};

}  // namespace polyphony
