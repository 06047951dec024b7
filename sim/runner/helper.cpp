#include "sim/runner/helper.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "shared/error.h"
#include "shared/files/descriptor.h"
#include "sim/runner/exit_status.h"

extern char** environ;

namespace polyphony::sim {
namespace {

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

// Returns false at the end of the stream.
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
    return "killed, most likely because memory ran out: use fewer microbatches or ranks, or "
           "--estimate";
  if (WIFSIGNALED(status)) return std::string("killed by ") + strsignal(WTERMSIG(status));
  return "exit status " + std::to_string(WEXITSTATUS(status));
}

// The helper's standard input.
class Input {
 public:
  // A file in memory, which the helper maps: nothing is copied through a pipe. If this process may
  // not write files of that size, a socket, from which the helper reads.
  explicit Input(const std::string& request) : request_(request) {
    file_ = memfd_create("polyphony-request", MFD_CLOEXEC);
    POLYPHONY_CHECK(file_ >= 0, "memfd_create: " << std::strerror(errno));
    const int error = write_all(file_, request.data(), request.size());
    if (error == 0 && lseek(file_, 0, SEEK_SET) == 0) return;
    close(file_);
    if (error != EFBIG) throw std::bad_alloc();
    std::array<int, 2> ends{};
    POLYPHONY_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0,
                    "socketpair: " << std::strerror(errno));
    file_ = ends[0];
    sender_ = ends[1];
  }
  ~Input() {
    close_file();
    if (sender_ >= 0) close(sender_);
  }
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  int file() const { return file_; }
  // Called once the helper has the file: sends the request on a thread, where it is not in the file.
  std::jthread send() {
    close_file();
    if (sender_ < 0) return {};
    return std::jthread([this] {
      for (std::size_t at = 0; at < request_.size();) {
        const ssize_t sent =
            ::send(sender_, request_.data() + at, request_.size() - at, MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR) break;  // the helper has ended, and says why
        at += static_cast<std::size_t>(std::max<ssize_t>(0, sent));
      }
      shutdown(sender_, SHUT_WR);
    });
  }

 private:
  void close_file() {
    if (file_ >= 0) close(file_);
    file_ = -1;
  }

  const std::string& request_;
  int file_ = -1, sender_ = -1;
};

std::filesystem::path folder_of_this_code() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&helper_program), &info) == 0 || !info.dli_fname)
    return {};
  std::error_code failed;
  std::filesystem::path path = std::filesystem::canonical(info.dli_fname, failed);
  // The name of a program may be relative to a folder that is no longer the current one.
  if (failed) path = std::filesystem::read_symlink("/proc/self/exe", failed);
  return path.parent_path();
}

}  // namespace

std::string helper_program() {
  if (const char* path = std::getenv("POLYPHONY_SIMULATE")) return path;
  const std::filesystem::path here = folder_of_this_code();
  std::vector<std::filesystem::path> folders = {here};
  // A program that links the installed library is elsewhere; polyphony is usually on the PATH.
  if (const char* path = std::getenv("PATH")) {
    std::istringstream rest(path);
    for (std::string folder; std::getline(rest, folder, ':');)
      if (!folder.empty()) folders.emplace_back(folder);
  }
  for (const std::filesystem::path& folder : folders)
    for (const char* below : {"polyphony-simulate", "../libexec/polyphony/polyphony-simulate"}) {
      std::error_code failed;
      const std::filesystem::path path = folder / below;
      if (std::filesystem::exists(path, failed)) return path.string();
    }
  throw InputError("polyphony-simulate", "", "is neither in " + here.string() + " nor on the PATH",
                   "build or install it with polyphony, or set POLYPHONY_SIMULATE to its path");
}

std::string run_helper(const std::string& program, const std::string& request) {
  Input input(request);
  Pipe result, errors;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input.file(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, result.write_end, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors.write_end, STDERR_FILENO);
  std::string name = program;
  char* arguments[] = {name.data(), nullptr};
  pid_t child = -1;
  const int error = posix_spawn(&child, program.c_str(), &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error == ENOMEM) throw std::bad_alloc();
  POLYPHONY_CHECK(error == 0, program << " cannot be started: " << std::strerror(error));
  Pipe::close_end(result.write_end);
  Pipe::close_end(errors.write_end);
  const std::jthread sending = input.send();
  std::string bytes, text;
  collect(result, errors, bytes, text);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == kOutOfMemory) throw std::bad_alloc();
  if (status != 0) {
    const std::string why = reason(text);
    throw InternalError("polyphony-simulate failed (" + describe_end(status) + ")" +
                        (why.empty() ? std::string() : ": " + why));
  }
  return bytes;
}

}  // namespace polyphony::sim
