// The bytes of a file, mapped into memory: a page is read from the disk when it is used, and the
// processes of a machine share it. For files that are too large to read as a whole.
//   The file must not be truncated while it is mapped: the system ends the process that reads
// behind its end (SIGBUS).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace polyphony {

class MappedFile {
 public:
  // Throws InputError that names the file if it cannot be mapped, as whole.h does.
  explicit MappedFile(const std::string& path, const std::string& hint = "check the path");
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::string_view bytes() const { return {begin_, size_}; }
  const std::string& path() const { return path_; }
  // Takes the pages of a range off this process's account. They are read again when they are used.
  void let_go(std::size_t begin, std::size_t bytes) const;

 private:
  std::string path_;
  const char* begin_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace polyphony
