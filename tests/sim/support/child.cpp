#include "tests/sim/support/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <new>
#include <utility>

#include "shared/error.h"
#include "shared/files/descriptor.h"

namespace polyphony::sim {
namespace {

constexpr int kNoMemory = 2;  // exit status of a child that ran out of memory

struct Pipe {
  int read_end = -1;
  int write_end = -1;

  Pipe() {
    std::array<int, 2> ends{};
    POLYPHONY_CHECK(pipe2(ends.data(), O_CLOEXEC) == 0, "pipe: " << std::strerror(errno));
    read_end = ends[0];
    write_end = ends[1];
  }
  ~Pipe() {
    close_end(read_end);
    close_end(write_end);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  static void close_end(int& end) {
    if (end >= 0) close(end);
    end = -1;
  }
};

// Appends what can be read to `into`. Returns false at the end of the stream.
bool read_some(int file, std::string& into) {
  constexpr std::size_t kBlock = std::size_t{1} << 16;  // capacity of a Linux pipe
  const std::size_t before = into.size();
  into.resize(before + kBlock);
  ssize_t count = 0;
  do {
    count = read(file, into.data() + before, kBlock);
  } while (count < 0 && errno == EINTR);
  into.resize(before + static_cast<std::size_t>(count > 0 ? count : 0));
  return count > 0;
}

// Runs in the child. Uses _exit, not exit: the child must not flush the caller's buffers or run its
// exit handlers.
[[noreturn]] void be_child(const std::function<std::string()>& work, const Pipe& result,
                           const Pipe& talk, pid_t parent) {
  constexpr int kFailed = 1;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kFailed);  // the caller died before the line above
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  dup2(talk.write_end, STDERR_FILENO);
  dup2(talk.write_end,
       STDOUT_FILENO);  // a library that prints must not mix with the caller's answer
  std::string bytes;
  try {
    bytes = work();
  } catch (const std::bad_alloc&) {
    _exit(kNoMemory);
  } catch (const std::exception& error) {
    const std::string line = std::string(error.what()) + "\n";
    write_all(STDERR_FILENO, line.data(), line.size());
    _exit(kFailed);
  }
  _exit(write_all(result.write_end, bytes.data(), bytes.size()) == 0 ? 0 : kFailed);
}

void collect(const Pipe& result, const Pipe& talk, std::string& bytes, std::string& said) {
  std::array<pollfd, 2> files{{{result.read_end, POLLIN, 0}, {talk.read_end, POLLIN, 0}}};
  while (files[0].fd >= 0 || files[1].fd >= 0) {
    if (poll(files.data(), files.size(), -1) < 0 && errno != EINTR) return;
    if (files[0].revents != 0 && !read_some(result.read_end, bytes)) files[0].fd = -1;
    if (files[1].revents != 0 && !read_some(talk.read_end, said)) files[1].fd = -1;
    for (pollfd& file : files) file.revents = 0;
  }
}

// Returns the error message in the child's output. SimGrid prints it in a line marked CRITICAL,
// before a backtrace; our own message is the last line.
std::string reason(const std::string& said) {
  std::string last, critical;
  std::size_t at = 0;
  while (at < said.size()) {
    const std::size_t stop = std::min(said.find('\n', at), said.size());
    const std::string line = said.substr(at, stop - at);
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

std::string run_in_child(const std::function<std::string()>& work) {
  Pipe result, talk;
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0 && errno == ENOMEM) throw std::bad_alloc();
  POLYPHONY_CHECK(child >= 0, "fork: " << std::strerror(errno));
  if (child == 0) be_child(work, result, talk, parent);
  Pipe::close_end(result.write_end);
  Pipe::close_end(talk.write_end);
  std::string bytes, said;
  collect(result, talk, bytes, said);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNoMemory) throw std::bad_alloc();
  if (status != 0) {
    const std::string why = reason(said);
    throw InternalError("the simulating child failed (" + describe_end(status) + ")" +
                        (why.empty() ? std::string() : ": " + why));
  }
  return bytes;
}

}  // namespace polyphony::sim
