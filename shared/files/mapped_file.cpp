#include "shared/files/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "shared/error.h"
#include "shared/files/descriptor.h"

namespace polyphony {

MappedFile::MappedFile(const std::string& path, const std::string& hint) : path_(path) {
  const auto fail = [&](const std::string& why) {
    throw InputError(path, "", "cannot be read: " + why, hint);
  };
  // Opening a pipe without a writer must not block.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status{};
  if (file < 0 || ::fstat(file, &status) != 0) fail(std::strerror(errno));
  if (!S_ISREG(status.st_mode)) fail("it is not a regular file");
  if (status.st_size == 0) return;  // nothing to map
  size_ = static_cast<std::size_t>(status.st_size);
  void* const mapped = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0);
  if (mapped == MAP_FAILED) fail(std::strerror(errno));
  begin_ = static_cast<const char*>(mapped);
}

void MappedFile::let_go(std::size_t begin, std::size_t bytes) const {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t end = std::min(size_, begin + bytes);
  begin = begin / page * page;
  if (begin < end) ::madvise(const_cast<char*>(begin_) + begin, end - begin, MADV_DONTNEED);
}

MappedFile::~MappedFile() {
  if (begin_) ::munmap(const_cast<char*>(begin_), size_);
}

}  // namespace polyphony
