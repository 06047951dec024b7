#include "sim/launching/rank_process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <random>
#include <stdexcept>
#include <utility>

#include "shared/error.h"
#include "shared/files/run_folder.h"
#include "sim/launching/launch.h"

extern char** environ;

namespace polyphony::sim {
namespace {

// Binds a port of this host (0: any) for a moment. Returns its number, or 0 if it is in use.
int bound_port(std::uint16_t port) {
  const int socket_file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  socklen_t size = sizeof address;
  const bool ok = socket_file >= 0 &&
                  bind(socket_file, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                  getsockname(socket_file, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  if (socket_file >= 0) close(socket_file);
  return ok ? ntohs(address.sin_port) : 0;
}

// Returns a port that was free a moment ago; the worker that hosts the store binds it. It is below
// those that Linux gives to outgoing connections, from 32768 on (ip(7), ip_local_port_range), so
// that none takes it before.
int free_port() {
  constexpr unsigned kFirst = 20000, kPorts = 12000, kTries = 1000;
  std::random_device random;
  for (unsigned i = 0; i < kTries; ++i)
    if (const int port = bound_port(static_cast<std::uint16_t>(kFirst + random() % kPorts)))
      return port;
  if (const int port = bound_port(0)) return port;
  throw std::runtime_error(std::string("no free local port: ") + std::strerror(errno));
}

// Everything the child needs, made before fork(): between fork and exec only system calls are safe.
pid_t start_rank(const std::string& worker, const RankCommand& command, int rank, int port,
                 int output, int talk) {
  std::vector<std::string> environment;
  const std::vector<std::pair<std::string, std::string>> ours{
      {"RANK", std::to_string(rank)},
      {"LOCAL_RANK", std::to_string(rank)},
      {"WORLD_SIZE", std::to_string(command.ranks)},
      {"LOCAL_WORLD_SIZE", std::to_string(command.ranks)},
      {"MASTER_ADDR", "127.0.0.1"},
      {"MASTER_PORT", std::to_string(port)},
      {kRunLock, std::to_string(command.folder_lock)}};
  for (char** entry = environ; *entry; ++entry) {
    const std::string text = *entry;
    const std::string key = text.substr(0, text.find('='));
    const bool replaced =
        std::any_of(ours.begin(), ours.end(), [&](const auto& o) { return o.first == key; });
    if (!replaced && key.rfind("TORCHELASTIC_", 0) != 0) environment.push_back(text);
  }
  for (const auto& [key, value] : ours) environment.push_back(key + "=" + value);
  std::vector<char*> argv{const_cast<char*>(worker.c_str())}, envp;
  for (const std::string& argument : command.arguments)
    argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  for (const std::string& entry : environment) envp.push_back(const_cast<char*>(entry.c_str()));
  envp.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid != 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  setpgid(0, 0);  // Ctrl-C reaches the launcher alone, which passes it on
  dup2(output, STDOUT_FILENO);
  dup2(talk, STDERR_FILENO);
  if (command.folder_lock >= 0) fcntl(command.folder_lock, F_SETFD, 0);
  execve(worker.c_str(), argv.data(), envp.data());
  _exit(127);
}

}  // namespace

PipeEnds make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    throw std::runtime_error(std::string("cannot make a pipe: ") + std::strerror(errno));
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return {ends[0], ends[1]};
}

std::string drain(int file) {
  std::string text;
  char buffer[4096];
  ssize_t got = 0;
  while ((got = read(file, buffer, sizeof buffer)) > 0)
    text.append(buffer, static_cast<std::size_t>(got));
  return text;
}

bool Child::failed() const { return WIFSIGNALED(status) || WEXITSTATUS(status) != 0; }

bool Child::stopped() const { return asked && WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM; }

bool Child::refused() const {
  return WIFEXITED(status) && (WEXITSTATUS(status) == static_cast<int>(ExitCode::bad_input) ||
                               WEXITSTATUS(status) == static_cast<int>(ExitCode::infeasible));
}

int Child::severity() const {
  if (!failed()) return 0;
  if (hurried || blames || stopped()) return 1;
  return WIFSIGNALED(status) ? 4 : refused() ? 3 : 2;
}

std::string Child::ending() const {
  if (hurried) return "had not ended by itself and was killed";
  if (!WIFSIGNALED(status)) return "ended with exit code " + std::to_string(WEXITSTATUS(status));
  return "was killed by signal " + std::to_string(WTERMSIG(status)) + " (" +
         strsignal(WTERMSIG(status)) + ")";
}

void start_ranks(const RankCommand& command, int output, std::vector<Child>& children) {
  const std::string worker = find_worker();
  const int port = free_port();
  const int null_file = open("/dev/null", O_WRONLY | O_CLOEXEC);
  for (int r = 0; r < command.ranks; ++r) {
    const PipeEnds talk = make_pipe();
    const pid_t pid = start_rank(worker, command, r, port, r == 0 ? output : null_file, talk.write);
    close(talk.write);
    if (pid < 0)
      throw std::runtime_error("cannot start rank " + std::to_string(r) + ": " +
                               std::strerror(errno));
    Child& child = children.emplace_back();
    child.pid = pid;
    child.talk = talk.read;
    child.running = true;
  }
  close(null_file);
}

void kill_running(std::vector<Child>& children, int number) {
  for (Child& child : children) {
    if (!child.running) continue;
    (number == SIGKILL ? child.hurried : child.asked) = true;
    kill(child.pid, number);
  }
}

Reaper::~Reaper() {
  kill_running(children_, SIGKILL);
  for (Child& child : children_) {
    if (child.running) waitpid(child.pid, nullptr, 0);
    close(child.talk);
  }
}

Child* reap(std::vector<Child>& children) {
  for (Child& child : children) {
    if (!child.running || waitpid(child.pid, &child.status, WNOHANG) != child.pid) continue;
    child.running = false;
    return &child;
  }
  return nullptr;
}

}  // namespace polyphony::sim
