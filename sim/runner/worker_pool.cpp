#include "sim/runner/worker_pool.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <new>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "shared/error.h"
#include "shared/files/descriptor.h"

namespace polyphony::sim {
namespace {

struct Process {
  pid_t pid = -1;
  int pipe = -1;
  std::string received;
  std::size_t next = 0;  // the piece whose answer comes next
};

[[noreturn]] void serve(int file, std::size_t first, std::size_t step, std::size_t count,
                        const std::function<std::string(std::size_t)>& work) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // Ctrl-C on the parent leaves nothing behind
  signal(SIGINT, SIG_DFL);           // nor here, whatever the parent makes of it
  for (std::size_t i = first; i < count; i += step) {
    std::string answer;
    try {
      answer = work(i);
    } catch (const std::bad_alloc&) {
      answer = nlohmann::json{{"error",
                               "needs more memory than this machine gives (fewer --jobs, ranks "
                               "or microbatches)"}}
                   .dump();
    } catch (const std::exception& error) {
      answer = nlohmann::json{{"error", error.what()}}.dump();
    }
    const std::uint64_t size = answer.size();
    if (write_all(file, &size, sizeof size) != 0 ||
        write_all(file, answer.data(), answer.size()) != 0)
      _exit(1);
  }
  _exit(0);
}

}  // namespace

std::vector<std::string> run_in_workers(int jobs, std::size_t count,
                                        const std::function<std::string(std::size_t)>& work,
                                        const std::function<void(std::size_t done)>& progress) {
  std::vector<std::string> answers(count);
  std::size_t done = 0;
  run_in_workers(jobs, count, work, [&](std::size_t i, const std::string& answer) {
    answers[i] = answer;
    if (progress) progress(++done);
  });
  return answers;
}

void run_in_workers(int jobs, std::size_t count,
                    const std::function<std::string(std::size_t)>& work, const Arrived& arrived,
                    const std::function<bool()>& stopped) {
  const std::size_t workers = std::min(count, static_cast<std::size_t>(std::max(1, jobs)));
  std::vector<Process> processes(workers);
  for (std::size_t w = 0; w < workers; ++w) {
    int ends[2];
    if (pipe(ends) != 0)
      throw std::runtime_error(std::string("cannot make a pipe: ") + std::strerror(errno));
    const pid_t pid = fork();
    if (pid < 0)
      throw std::runtime_error(std::string("cannot start a worker process: ") +
                               std::strerror(errno));
    if (pid == 0) {
      close(ends[0]);
      serve(ends[1], w, workers, count, work);
    }
    close(ends[1]);
    processes[w] = {pid, ends[0], {}, w};
  }
  std::size_t open = workers;
  while (open > 0) {
    std::vector<pollfd> waiting;
    for (const Process& process : processes) waiting.push_back({process.pipe, POLLIN, 0});
    constexpr int kLook = 100;  // milliseconds
    poll(waiting.data(), waiting.size(), stopped ? kLook : -1);
    if (stopped && stopped())
      for (const Process& process : processes)
        if (process.pipe >= 0) kill(process.pid, SIGKILL);
    for (std::size_t w = 0; w < workers; ++w) {
      if (processes[w].pipe < 0 || waiting[w].revents == 0) continue;
      Process& process = processes[w];
      char buffer[1 << 16];
      const ssize_t got = read(process.pipe, buffer, sizeof buffer);
      if (got > 0) process.received.append(buffer, static_cast<std::size_t>(got));
      std::uint64_t size = 0;
      while (process.received.size() >= sizeof size) {
        std::memcpy(&size, process.received.data(), sizeof size);
        if (process.received.size() < sizeof size + size) break;
        const std::string answer = process.received.substr(sizeof size, size);
        process.received.erase(0, sizeof size + size);
        arrived(process.next, answer);
        process.next += workers;
      }
      if (got > 0) continue;
      close(process.pipe);
      process.pipe = -1;
      --open;
      int status = 0;
      waitpid(process.pid, &status, 0);
      for (std::size_t i = process.next; i < count; i += workers)
        arrived(i,
                nlohmann::json{{"error", WIFSIGNALED(status) ? std::string("worker killed by ") +
                                                                   strsignal(WTERMSIG(status))
                                                             : std::string("worker ended early")}}
                    .dump());
    }
  }
}

}  // namespace polyphony::sim
