#include "sim/commands/launch.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "shared/error.h"

extern char** environ;

namespace polyphony::sim {
namespace {

volatile std::sig_atomic_t signals_seen = 0;
void count_signal(int) { signals_seen = signals_seen + 1; }

// Restores the handlers that were there before.
class SignalCounter {
 public:
  SignalCounter() {
    signals_seen = 0;
    struct sigaction action{};
    action.sa_handler = count_signal;
    sigaction(SIGINT, &action, &old_interrupt_);
    sigaction(SIGTERM, &action, &old_terminate_);
  }
  ~SignalCounter() {
    sigaction(SIGINT, &old_interrupt_, nullptr);
    sigaction(SIGTERM, &old_terminate_, nullptr);
  }

 private:
  struct sigaction old_interrupt_{}, old_terminate_{};
};

// A port that was free a moment ago; the worker that hosts the store binds it.
int free_port() {
  const int socket_file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  const bool ok = socket_file >= 0 &&
                  bind(socket_file, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                  getsockname(socket_file, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  const int port = ntohs(address.sin_port);
  if (socket_file >= 0) close(socket_file);
  if (!ok) throw std::runtime_error(std::string("no free local port: ") + std::strerror(errno));
  return port;
}

struct Child {
  pid_t pid = -1;
  bool running = false;
  int talk = -1;         // read end of its stderr
  std::string said;      // read from it
  int status = 0;        // of waitpid
  bool hurried = false;  // killed by us

  bool failed() const { return WIFSIGNALED(status) || WEXITSTATUS(status) != 0; }
  bool refused() const {
    return WIFEXITED(status) && (WEXITSTATUS(status) == static_cast<int>(ExitCode::bad_input) ||
                                 WEXITSTATUS(status) == static_cast<int>(ExitCode::infeasible));
  }
  bool blames_another() const { return said.find(": lost rank ") != std::string::npos; }
  // Causes before consequences.
  int severity() const {
    if (!failed()) return 0;
    if (hurried || blames_another()) return 1;
    return WIFSIGNALED(status) ? 4 : refused() ? 3 : 2;
  }
  std::string ending() const {
    if (hurried) return "had not ended by itself and was killed";
    if (!WIFSIGNALED(status)) return "ended with exit code " + std::to_string(WEXITSTATUS(status));
    return "was killed by signal " + std::to_string(WTERMSIG(status)) + " (" +
           strsignal(WTERMSIG(status)) + ")";
  }
};

// Everything the child needs, made before fork(): between fork and exec only system calls are safe.
pid_t start_rank(const std::string& worker, const std::vector<std::string>& arguments, int rank,
                 int ranks, int port, int output, int talk) {
  std::vector<std::string> environment;
  const std::vector<std::pair<std::string, std::string>> ours{
      {"RANK", std::to_string(rank)},        {"LOCAL_RANK", std::to_string(rank)},
      {"WORLD_SIZE", std::to_string(ranks)}, {"LOCAL_WORLD_SIZE", std::to_string(ranks)},
      {"MASTER_ADDR", "127.0.0.1"},          {"MASTER_PORT", std::to_string(port)}};
  for (char** entry = environ; *entry; ++entry) {
    const std::string text = *entry;
    const std::string key = text.substr(0, text.find('='));
    const bool replaced =
        std::any_of(ours.begin(), ours.end(), [&](const auto& o) { return o.first == key; });
    if (!replaced && key.rfind("TORCHELASTIC_", 0) != 0) environment.push_back(text);
  }
  for (const auto& [key, value] : ours) environment.push_back(key + "=" + value);
  std::vector<char*> argv{const_cast<char*>(worker.c_str())}, envp;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
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
  execve(worker.c_str(), argv.data(), envp.data());
  _exit(127);
}

struct Pipe {
  int read = -1, write = -1;
};

// Reading never waits.
Pipe make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    throw std::runtime_error(std::string("cannot make a pipe: ") + std::strerror(errno));
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return {ends[0], ends[1]};
}

void drain(int file, std::string& text) {
  char buffer[4096];
  ssize_t got = 0;
  while ((got = read(file, buffer, sizeof buffer)) > 0)
    text.append(buffer, static_cast<std::size_t>(got));
}

// What the ranks said on stderr, once they have ended: a line that several say alike once; when one
// refused its input, its words alone, for the others refuse the same or miss it.
void relay(const std::vector<Child>& children, const Child* cause) {
  std::set<std::string> said;
  for (const Child& child : children) {
    if (cause && cause->refused() && &child != cause) continue;
    std::istringstream lines(child.said);
    for (std::string line; std::getline(lines, line);)
      if (said.insert(line).second) std::cerr << line << "\n";
  }
}

void start_all(const LaunchOptions& options, int output, std::vector<Child>& children) {
  const std::string worker = find_worker();
  const int port = free_port();
  const int null_file = open("/dev/null", O_WRONLY | O_CLOEXEC);
  for (int r = 0; r < options.ranks; ++r) {
    const Pipe talk = make_pipe();
    const pid_t pid = start_rank(worker, options.arguments, r, options.ranks, port,
                                 r == 0 ? output : null_file, talk.write);
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
    child.hurried = child.hurried || number == SIGKILL;
    kill(child.pid, number);
  }
}

// Ends what runs when the launcher leaves by an exception.
class Reaper {
 public:
  explicit Reaper(std::vector<Child>& children) : children_(children) {}
  ~Reaper() {
    kill_running(children_, SIGKILL);
    for (Child& child : children_) {
      if (child.running) waitpid(child.pid, nullptr, 0);
      close(child.talk);
    }
  }
  Reaper(const Reaper&) = delete;
  Reaper& operator=(const Reaper&) = delete;

 private:
  std::vector<Child>& children_;
};

// The child that ended, if any did.
Child* reap(std::vector<Child>& children) {
  for (Child& child : children) {
    if (!child.running || waitpid(child.pid, &child.status, WNOHANG) != child.pid) continue;
    child.running = false;
    drain(child.talk, child.said);
    return &child;
  }
  return nullptr;
}

}  // namespace

std::string find_worker() {
  const std::filesystem::path here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const std::filesystem::path worker = here / "polyphony-worker";
  if (!std::filesystem::exists(worker))
    throw InputError(worker.string(), "", "is not there",
                     "build the executor half: cmake --workflow --preset release");
  return worker.string();
}

LaunchResult launch(const LaunchOptions& options) {
  const SignalCounter counter;
  const Pipe output = make_pipe();
  std::vector<Child> children;
  const Reaper reaper(children);
  start_all(options, output.write, children);
  close(output.write);

  LaunchResult result;
  using Clock = std::chrono::steady_clock;
  std::optional<Clock::time_point> deadline;
  const auto allow_grace = [&] {
    if (!deadline)
      deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(options.grace);
  };
  int passed_on = 0;
  const Child* cause = nullptr;
  for (std::size_t running = children.size(); running > 0;) {
    if (const Child* ended = reap(children)) {
      --running;
      if (ended->failed()) allow_grace();
      if (ended->severity() > (cause ? cause->severity() : 0)) cause = ended;
      continue;
    }
    drain(output.read, result.output);
    for (Child& child : children) drain(child.talk, child.said);
    if (signals_seen > passed_on) {
      result.interrupted = true;
      kill_running(children, passed_on == 0 ? SIGTERM : SIGKILL);
      passed_on = signals_seen;
      allow_grace();
    }
    if (deadline && Clock::now() > *deadline) kill_running(children, SIGKILL);
    if (options.tick) options.tick();
    std::this_thread::sleep_for(std::chrono::milliseconds(options.tick ? 200 : 20));
  }
  drain(output.read, result.output);
  close(output.read);
  relay(children, cause);
  if (cause) {
    result.exit_code =
        WIFEXITED(cause->status) ? WEXITSTATUS(cause->status) : static_cast<int>(ExitCode::failed);
    // A rank that hangs, the cause, ends last and by our hand: then the loss that others noticed.
    const std::size_t loss = cause->said.find("lost rank ");
    if (cause->severity() == 1 && loss != std::string::npos)
      result.what = cause->said.substr(loss, cause->said.find('\n', loss) - loss);
    else if (!cause->refused())
      result.what = "rank " + std::to_string(cause - children.data()) + " " + cause->ending();
  }
  return result;
}

}  // namespace polyphony::sim
