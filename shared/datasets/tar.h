// Reads a tar archive from front to back: regular files, with names of any length. What comes next
// is fetched from the disk in large parts while the caller works. Source: POSIX.1-2017 pax, "ustar
// Interchange Format" and "pax Extended Header"; long names of GNU tar ("L").
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "shared/files/descriptor.h"

namespace polyphony {

class TarReader {
 public:
  // The constructor and all functions throw InputError, naming the archive and the position, if it
  // is missing, truncated or damaged.
  explicit TarReader(const std::string& path);

  struct Member {
    std::string name;
    std::int64_t offset = 0, size = 0;  // bytes of its content in the archive
  };
  // Returns the next regular file; nothing at the end of the archive.
  std::optional<Member> next();
  // Return the first or the last bytes of that file, at most `most`.
  std::string read(std::size_t most);
  std::string read_end(std::size_t most);
  // Returns the share of the archive's bytes that have been read, from 0 to 1.
  double share() const;

 private:
  std::string take(std::size_t count);
  void fetch_ahead();
  [[noreturn]] void refuse(const std::string& what) const;

  std::string path_;
  Descriptor file_;
  std::int64_t total_ = 0, at_ = 0;   // bytes
  std::int64_t fetched_ = 0;          // up to which the system was asked to fetch
  std::int64_t begin_ = 0, end_ = 0;  // of the member's content
};

}  // namespace polyphony
