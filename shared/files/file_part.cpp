#include "shared/files/file_part.h"

#include <fstream>

#include "shared/error.h"
#include "shared/files/whole.h"

namespace polyphony {

std::string read_part(const FilePart& part) {
  if (part.offset == 0 && part.bytes < 0) return read_records(part.path);
  std::ifstream file(part.path, std::ios::binary);
  std::string bytes(static_cast<std::size_t>(part.bytes), '\0');
  file.seekg(part.offset);
  file.read(bytes.data(), part.bytes);
  if (file.gcount() != part.bytes)
    throw InputError(
        part.path, "",
        "ends before byte " + std::to_string(part.offset + part.bytes) + ", or cannot be read",
        "the file changed while it was used: restore it");
  return bytes;
}

}  // namespace polyphony
