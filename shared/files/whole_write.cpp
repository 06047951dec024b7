#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <iostream>

#include "shared/error.h"
#include "shared/files/descriptor.h"
#include "shared/files/whole.h"

namespace polyphony {
namespace {

void write_as_it_is(int number, const std::string& text, const std::string& path) {
  Descriptor file(number);
  if (file < 0) fail_to_write(path, errno);
  if (const int error = write_all(file, text.data(), text.size())) fail_to_write(path, error);
  if (file.close() != 0) fail_to_write(path, errno);
}

// A temporary file next to the target, used by this process only; removed unless it was renamed.
class Partial {
 public:
  explicit Partial(const std::string& target) {
    constexpr int kLeftBehind = 100;  // most partial files left by writers that were killed
    for (int i = 0; i < kLeftBehind; ++i) {
      name_ = target + ".partial" + (i ? std::to_string(i) : "");
      file_ = ::open(name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (file_ >= 0 || errno != EEXIST) return;
    }
  }
  ~Partial() {
    if (file_ >= 0 && !renamed_) ::unlink(name_.c_str());
  }
  Partial(const Partial&) = delete;
  Partial& operator=(const Partial&) = delete;
  int file() const { return file_; }
  int rename_to(const std::string& target) {
    if (std::rename(name_.c_str(), target.c_str()) != 0) return errno;
    renamed_ = true;
    return 0;
  }

 private:
  std::string name_;
  int file_ = -1;
  bool renamed_ = false;
};

int replace(const std::string& target, const std::string& text, const struct stat* old) {
  if (old && ::access(target.c_str(), W_OK) != 0) return errno;
  Partial partial(target);
  if (partial.file() < 0) return errno;
  Descriptor file(partial.file());
  if (old) ::fchmod(file, old->st_mode & 07777);
  if (const int error = write_all(file, text.data(), text.size())) return error;
  // Without this sync, a crash after the rename may leave neither the old text nor the new one.
  if (::fsync(file) != 0 && errno != EINVAL) return errno;
  if (file.close() != 0) return errno;
  return partial.rename_to(target);
}

// Returns the path that the links lead to, whether or not it exists.
std::string followed(const std::string& path) {
  constexpr int kLinks = 40;  // as many as Linux follows
  std::filesystem::path place = path;
  std::error_code failed;
  for (int i = 0; i < kLinks && std::filesystem::is_symlink(place, failed); ++i)
    place = link_target(place, failed);
  return place.string();
}

}  // namespace

void write_file(const std::string& path, const std::string& text) {
  if (const int number = own_descriptor(path); number >= 0) {
    if (number == STDOUT_FILENO) std::cout.flush();  // flush what was printed before
    return write_as_it_is(::dup(number), text, path);
  }
  struct stat about{};
  const bool exists = ::stat(path.c_str(), &about) == 0;
  if (exists && S_ISDIR(about.st_mode)) throw InputError(path, "", "is a folder", "name a file");
  if (exists && !S_ISREG(about.st_mode)) {
    // Opening a pipe without a reader must not block.
    const int number = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    return write_as_it_is(number, text, path);
  }
  if (const int error = replace(followed(path), text, exists ? &about : nullptr))
    fail_to_write(path, error);
}

void check_writable(const std::string& path) {
  if (own_descriptor(path) >= 0) return;
  struct stat about{};
  const bool exists = ::stat(path.c_str(), &about) == 0;
  if (exists && S_ISDIR(about.st_mode)) throw InputError(path, "", "is a folder", "name a file");
  if (exists && ::access(path.c_str(), W_OK) != 0) fail_to_write(path, errno);
  if (exists && !S_ISREG(about.st_mode)) return;
  const Partial partial(followed(path));
  if (partial.file() < 0) fail_to_write(path, errno);
  ::close(partial.file());
}

bool finish_stdout() {
  errno = 0;
  std::cout.flush();
  bool whole = std::cout.good() && std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  int error = errno;
  if (whole) {  // network file systems report a full disk when a descriptor is closed
    const int copy = ::dup(STDOUT_FILENO);
    whole = copy < 0 || ::close(copy) == 0;  // no stdout at start: nothing is lost
    error = errno;
  }
  if (whole) return true;
  pollfd reader{STDOUT_FILENO, POLLOUT, 0};
  if (error == EPIPE || (::poll(&reader, 1, 0) > 0 && (reader.revents & POLLERR))) return false;
  fail_to_write("stdout", error ? error : ENOSPC);
}

}  // namespace polyphony
