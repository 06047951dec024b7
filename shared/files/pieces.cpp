#include "shared/files/pieces.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "shared/error.h"
#include "shared/text/figure_text.h"

namespace polyphony {
namespace {

[[noreturn]] void cannot(const std::string& path, int error, const std::string& hint) {
  std::string what = "cannot be read";
  if (error != ENOENT) what += std::string(": ") + std::strerror(error);
  throw InputError(path, "", what, hint);
}

}  // namespace

// Opening a pipe without a writer must not block.
FilePieces::FilePieces(const std::string& path, const std::string& hint, Seconds silence)
    : path_(path),
      hint_(hint),
      silence_(silence),
      file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {
  struct stat about{};
  if (file_ < 0 || ::fstat(file_, &about) != 0) cannot(path, errno, hint);
  if (S_ISDIR(about.st_mode)) throw InputError(path, "", "is a folder, not a file", hint);
  if (S_ISREG(about.st_mode)) size_ = Bytes(about.st_size);
}

// Waits until there is something to read, or the end of the file.
void FilePieces::await() {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                      std::chrono::duration<double>(silence_.count()));
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    if (left.count() <= 0)
      throw InputError(path_, "", "delivered no data for " + seconds_text(silence_),
                       "check that the program that writes to it is running, or name a file");
    pollfd waiting{file_, POLLIN, 0};
    if (::poll(&waiting, 1, static_cast<int>(left.count())) > 0) return;
  }
}

std::size_t FilePieces::read(char* into, std::size_t most) {
  for (;;) {
    if (!size_) await();
    const ::ssize_t count = ::read(file_, into, most);
    if (count >= 0) return static_cast<std::size_t>(count);
    if (errno != EINTR && errno != EAGAIN) cannot(path_, errno, hint_);
  }
}

}  // namespace polyphony
