#include "shared/files/descriptor.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include "shared/error.h"

namespace polyphony {

Descriptor::~Descriptor() { close(); }

int Descriptor::close() {
  const int number = std::exchange(number_, -1);
  return number < 0 ? 0 : ::close(number);
}

int own_descriptor(const std::string& path) {
  namespace fs = std::filesystem;
  constexpr int kLinks = 40;  // as many as Linux follows
  std::error_code failed;
  const fs::path own = fs::canonical("/proc/self/fd", failed);
  if (failed) return -1;
  fs::path place = path;
  for (int i = 0; i < kLinks; ++i) {
    const fs::path folder =
        fs::canonical(place.has_parent_path() ? place.parent_path() : ".", failed);
    const std::string name = place.filename();
    if (!failed && folder == own && !name.empty() &&
        name.find_first_not_of("0123456789") == std::string::npos)
      return std::stoi(name);
    place = link_target(place, failed);
    if (failed) return -1;
  }
  return -1;
}

int write_all(int file, const void* data, std::size_t size) {
  const char* next = static_cast<const char*>(data);
  while (size > 0) {
    const ::ssize_t count = ::write(file, next, size);
    if (count < 0 && errno == EINTR) continue;
    // A terminal or pipe may have been made non-blocking by another process.
    if (count < 0 && errno == EAGAIN) {
      pollfd waiting{file, POLLOUT, 0};
      ::poll(&waiting, 1, -1);
      continue;
    }
    if (count < 0) return errno;
    next += count;
    size -= static_cast<std::size_t>(count);
  }
  return 0;
}

std::filesystem::path link_target(const std::filesystem::path& link, std::error_code& failed) {
  const std::filesystem::path next = std::filesystem::read_symlink(link, failed);
  return next.is_absolute() ? next : link.parent_path() / next;
}

void fail_to_write(const std::string& path, int error) {
  const std::string what = std::string("cannot be written: ") + std::strerror(error);
  switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      throw std::runtime_error(
          InputError::line(path, "", what, "free some disk space, or write elsewhere"));
    case EIO:
    case EPIPE:
    case EBADF:
      throw std::runtime_error(InputError::line(path, "", what, "write elsewhere"));
    case ENXIO:
      throw InputError(path, "", "cannot be written: no process reads from this pipe",
                       "start the reader first");
    default:
      throw InputError(path, "", what, "name a file in a folder that you may write to");
  }
}

}  // namespace polyphony
