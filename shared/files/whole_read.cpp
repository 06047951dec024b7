#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "shared/error.h"
#include "shared/files/descriptor.h"
#include "shared/files/whole.h"
#include "shared/text/figure_text.h"

namespace polyphony {
namespace {

constexpr std::size_t kBlock = std::size_t{1} << 18;

[[noreturn]] void too_large(const std::string& path, const ReadLimits& limits) {
  throw InputError(
      path, "",
      "is larger than " + bytes_text(limits.most) + ", the most that is read of such a file",
      "check that it is the file you mean, or shorten it");
}

[[noreturn]] void cannot(const std::string& path, int error, const std::string& hint) {
  std::string what = "cannot be read";
  if (error != ENOENT) what += std::string(": ") + std::strerror(error);
  throw InputError(path, "", what, hint);
}

// Until there is something to read, or an end.
void await(int file, const std::string& path, const ReadLimits& limits) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                      std::chrono::duration<double>(limits.silence.count()));
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    if (left.count() <= 0)
      throw InputError(path, "", "says nothing for " + seconds_text(limits.silence),
                       "check that its writer runs, or name a file");
    pollfd waiting{file, POLLIN, 0};
    if (::poll(&waiting, 1, static_cast<int>(left.count())) > 0) return;
  }
}

}  // namespace

std::string read_whole(const std::string& path, const ReadLimits& limits, const std::string& hint) {
  const auto most = static_cast<std::size_t>(limits.most.value);
  // A pipe without a writer must not hold up its opening.
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat about{};
  if (file < 0 || ::fstat(file, &about) != 0) cannot(path, errno, hint);
  if (S_ISDIR(about.st_mode)) throw InputError(path, "", "is a folder, a file is wanted", hint);
  if (S_ISREG(about.st_mode) && about.st_size > limits.most.value) too_large(path, limits);
  std::string text;
  text.reserve(static_cast<std::size_t>(about.st_size));
  std::string block(kBlock, '\0');
  for (;;) {
    if (!S_ISREG(about.st_mode)) await(file, path, limits);
    const ::ssize_t count = ::read(file, block.data(), block.size());
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count < 0) cannot(path, errno, hint);
    if (count == 0) return text;
    if (text.size() + static_cast<std::size_t>(count) > most) too_large(path, limits);
    text.append(block, 0, static_cast<std::size_t>(count));
  }
}

std::string read_file(const std::string& path) { return read_whole(path, kSettings); }

std::string read_records(const std::string& path) { return read_whole(path, kRecords); }

}  // namespace polyphony
