#include "shared/files/descriptor.h"

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
  constexpr int kLinks = 40;  // as Linux follows
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
    const fs::path next = fs::read_symlink(place, failed);
    if (failed) return -1;
    place = next.is_absolute() ? next : place.parent_path() / next;
  }
  return -1;
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
      throw InputError(path, "", "cannot be written: nobody reads from it",
                       "start its reader first");
    default:
      throw InputError(path, "", what, "name a file in a folder that you may write to");
  }
}

}  // namespace polyphony
