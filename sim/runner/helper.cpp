#include "sim/runner/helper.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
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
#include "sim/runner/child_process.h"

extern char** environ;

namespace polyphony::sim {
namespace {

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
  // Called once the helper has the file: sends the request on a thread if it is not in the file.
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
  if (const char* path = std::getenv("POLYPHONY_SIMULATE")) {
    std::error_code failed;
    if (std::filesystem::is_regular_file(path, failed)) return path;
    throw InputError("POLYPHONY_SIMULATE", "",
                     "must be the path of polyphony-simulate (got \"" + std::string(path) +
                         "\", which is not a file)",
                     "correct it, or unset it to use the one that was built with polyphony");
  }
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
  const std::jthread sending = input.send();
  return result_of(child, result, errors, "polyphony-simulate");
}

}  // namespace polyphony::sim
