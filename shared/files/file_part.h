// A part of a file: an image in a folder, or a member of an archive.
#pragma once

#include <cstdint>
#include <string>

namespace polyphony {

struct FilePart {
  std::string path;
  std::int64_t offset = 0;
  std::int64_t bytes = -1;  // −1: to the end of the file
  bool operator==(const FilePart&) const = default;
};

// Returns the bytes of the part. Throws InputError that names the file if it cannot be read, or if
// it is shorter than the part.
std::string read_part(const FilePart& part);

}  // namespace polyphony
