#include "tests/exec/transport/rank_processes.h"

#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <doctest/doctest.h>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string_view>
#include <thread>

#include "exec/device/device.h"
#include "exec/system/process.h"
#include "exec/wire/sockets.h"

namespace polyphony::exec {

namespace {

using Clock = std::chrono::steady_clock;

struct Entry {
  Role role;
  GlooOptions options;
  std::function<void(Transport&, torch::Device)> device_role;  // instead
};

std::map<std::string, Entry>& roles() {
  static std::map<std::string, Entry> table;
  return table;
}

struct Child {
  pid_t process = 0;
  int output = -1;
};

// Adds what sanitizers, the loader, CUDA, NCCL and LibTorch's allocator read, and what this test
// was asked. The variables of launchers, and HOME, stay behind.
void inherit(std::vector<std::string>& environment) {
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    for (const std::string_view prefix :
         {"TSAN_", "LD_LIBRARY_PATH=", "CUDA_", "NCCL_", "PYTORCH_", "POLYPHONY_"})
      if (text.starts_with(prefix) && !text.starts_with("POLYPHONY_TEST_ROLE="))
        environment.emplace_back(text);
  }
}

Child start(const std::string& role, int rank, int ranks, std::uint16_t port, StoreHost host) {
  Child child;
  child.output = memfd_create("rank output", MFD_CLOEXEC);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, child.output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, child.output, STDERR_FILENO);
  std::vector<std::string> environment{"POLYPHONY_TEST_ROLE=" + role,
                                       "RANK=" + std::to_string(rank),
                                       "LOCAL_RANK=" + std::to_string(rank),
                                       "WORLD_SIZE=" + std::to_string(ranks),
                                       "LOCAL_WORLD_SIZE=" + std::to_string(ranks),
                                       "MASTER_ADDR=127.0.0.1",
                                       "MASTER_PORT=" + std::to_string(port),
                                       "OMP_NUM_THREADS=1"};
  inherit(environment);
  if (host == StoreHost::launcher) {
    environment.insert(environment.end(),
                       {"TORCHELASTIC_RUN_ID=none", "TORCHELASTIC_USE_AGENT_STORE=True"});
  }
  std::vector<char*> variables;
  for (std::string& text : environment) variables.push_back(text.data());
  variables.push_back(nullptr);
  std::array<std::string, 3> words{"exec_test", "--test-case=rank process", "--no-skip"};
  std::array<char*, 4> arguments{words[0].data(), words[1].data(), words[2].data(), nullptr};
  const int error = posix_spawn(&child.process, "/proc/self/exe", &actions, nullptr,
                                arguments.data(), variables.data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::runtime_error("posix_spawn failed");
  return child;
}

std::string read_back(int descriptor) {
  std::string text;
  std::array<char, 4096> part{};
  lseek(descriptor, 0, SEEK_SET);
  for (ssize_t got = 0; (got = read(descriptor, part.data(), part.size())) > 0;) {
    text.append(part.data(), static_cast<std::size_t>(got));
  }
  close(descriptor);
  return text;
}

}  // namespace

bool add_role(const std::string& name, const Role& role, const GlooOptions& options) {
  return roles().emplace(name, Entry{role, options, {}}).second;
}

bool add_device_role(const std::string& name,
                     const std::function<void(Transport&, torch::Device)>& role) {
  return roles().emplace(name, Entry{{}, {}, role}).second;
}

GlooOptions messages_only() {
  GlooOptions options;
  options.direct_ranks = 0;
  return options;
}

void require(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error("not so: " + what);
}

std::vector<RankResult> run_rank_processes(const std::string& role, int ranks, Seconds limit,
                                           StoreHost host) {
  const std::uint16_t port = listen_at("127.0.0.1").port;  // closed again at once
  c10::intrusive_ptr<c10d::TCPStore> store;
  if (host == StoreHost::launcher) {
    c10d::TCPStoreOptions options;
    options.port = port;
    options.isServer = true;
    options.waitWorkers = false;
    store = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
  }
  std::vector<Child> children;
  const auto begin = Clock::now();
  for (int rank = 0; rank < ranks; ++rank) children.push_back(start(role, rank, ranks, port, host));
  std::vector<RankResult> results(children.size());
  std::size_t running = children.size();
  bool killed = false;
  while (running > 0) {
    for (std::size_t rank = 0; rank < children.size(); ++rank) {
      int status = 0;
      if (children[rank].process == 0 || waitpid(children[rank].process, &status, WNOHANG) == 0)
        continue;
      children[rank].process = 0;
      --running;
      results[rank].ended = Clock::now() - begin;
      results[rank].exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
      results[rank].output = read_back(children[rank].output);
    }
    if (!killed && Clock::now() - begin > limit) {
      killed = true;
      for (const Child& child : children) {
        if (child.process != 0) kill(child.process, SIGKILL);
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return results;
}

// Not a test: what run_rank_processes starts.
TEST_CASE("rank process" * doctest::skip()) {
  const char* const role = std::getenv("POLYPHONY_TEST_ROLE");
  if (role == nullptr) return;
  int status = 0;
  Rank self;
  try {
    const LaunchEnv launch = read_launch_env({}, process_environment());
    self = launch.rank;
    share_cores(launch.local_world_size);
    const Entry& entry = roles().at(role);
    const torch::Device device = choose_device("", launch);
    const auto transport =
        entry.device_role ? connect(launch, device) : connect_gloo(launch, entry.options);
    try {
      if (entry.device_role) {
        entry.device_role(*transport, device);
      } else {
        entry.role(*transport);
      }
    } catch (const LostPeer&) {
      throw;
    } catch (const std::exception& error) {
      transport->abort(error.what());
      throw;
    }
  } catch (const LostPeer& loss) {
    leave_after(loss, self);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %u: %s\n", self.value, error.what());
    status = 3;
  }
  std::fflush(nullptr);
  std::_Exit(status);
}

}  // namespace polyphony::exec
