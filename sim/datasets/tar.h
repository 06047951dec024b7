// A tar archive read from front to back: regular files, their names long or short.
// Source: POSIX.1-2017 pax, "ustar Interchange Format" and "pax Extended Header"; long names of GNU tar ("L").
#pragma once

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>

namespace polyphony::sim {

class TarReader {
 public:
  // Errors here and below: InputError that names the archive (and the place): missing, cut off, damaged.
  explicit TarReader(const std::string& path);

  struct Member {
    std::string name;
    std::int64_t size = 0;
  };
  // The next regular file; nothing: there are no more.
  std::optional<Member> next();
  // The first bytes of that file, at most so many.
  std::string read(std::size_t most);
  // Of all bytes of the archive.
  double share() const;

 private:
  std::string take(std::size_t count);
  [[noreturn]] void refuse(const std::string& what) const;

  std::string path_;
  std::ifstream file_;
  std::int64_t total_ = 0, at_ = 0;   // bytes
  std::int64_t begin_ = 0, end_ = 0;  // of the member's content
};

}  // namespace polyphony::sim
