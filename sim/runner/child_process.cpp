#include "sim/runner/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <new>

#include "shared/error.h"
#include "sim/runner/exit_status.h"

namespace polyphony::sim {
namespace {

// Appends what can be read to `into`. Returns false at the end of the stream.
bool read_some(int file, std::string& into) {
  constexpr std::size_t kBlock = std::size_t{1} << 16;  // the capacity of a Linux pipe
  const std::size_t before = into.size();
  into.resize(before + kBlock);
  ssize_t count = 0;
  do {
    count = read(file, into.data() + before, kBlock);
  } while (count < 0 && errno == EINTR);
  into.resize(before + static_cast<std::size_t>(count > 0 ? count : 0));
  return count > 0;
}

void collect(const Pipe& result, const Pipe& errors, std::string& bytes, std::string& text) {
  std::array<pollfd, 2> files{{{result.read_end, POLLIN, 0}, {errors.read_end, POLLIN, 0}}};
  while (files[0].fd >= 0 || files[1].fd >= 0) {
    if (poll(files.data(), files.size(), -1) < 0 && errno != EINTR) return;
    if (files[0].revents != 0 && !read_some(result.read_end, bytes)) files[0].fd = -1;
    if (files[1].revents != 0 && !read_some(errors.read_end, text)) files[1].fd = -1;
    for (pollfd& file : files) file.revents = 0;
  }
}

// Returns the line that explains a failure. SimGrid marks its own as CRITICAL and then prints a
// backtrace; ours is the last line.
std::string reason(const std::string& text) {
  std::string last, critical;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t stop = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, stop - at);
    if (!line.empty()) last = line;
    if (critical.empty() && line.find("/CRITICAL]") != std::string::npos) critical = line;
    at = stop + 1;
  }
  return critical.empty() ? last : critical;
}

std::string describe_end(int status) {
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
    return "killed, most likely because memory ran out: ask for fewer microbatches or ranks, or "
           "--estimate";
  if (WIFSIGNALED(status)) return std::string("killed by ") + strsignal(WTERMSIG(status));
  return "exit status " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

Pipe::Pipe() {
  std::array<int, 2> ends{};
  POLYPHONY_CHECK(pipe2(ends.data(), O_CLOEXEC) == 0, "pipe: " << std::strerror(errno));
  read_end = ends[0];
  write_end = ends[1];
}

Pipe::~Pipe() {
  close_end(read_end);
  close_end(write_end);
}

void Pipe::close_end(int& end) {
  if (end >= 0) close(end);
  end = -1;
}

std::string result_of(pid_t child, Pipe& result, Pipe& errors, const std::string& name) {
  Pipe::close_end(result.write_end);
  Pipe::close_end(errors.write_end);
  std::string bytes, text;
  collect(result, errors, bytes, text);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == kOutOfMemory) throw std::bad_alloc();
  if (status != 0) {
    const std::string why = reason(text);
    throw InternalError(name + " failed (" + describe_end(status) + ")" +
                        (why.empty() ? std::string() : ": " + why));
  }
  return bytes;
}

}  // namespace polyphony::sim
