#include "sim/runner/worker_pool.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <utility>

#include "shared/error.h"
#include "shared/files/descriptor.h"

namespace polyphony::sim {
namespace {

// What a worker says: the piece it begins, then the size of its answer and the answer.
struct Process {
  pid_t pid = -1;
  int pipe = -1;
  std::string received;
  std::optional<std::size_t> working;  // on this piece
};

// Counts up for all processes that are forked while it lives.
class SharedCounter {
 public:
  SharedCounter() {
    void* page =
        mmap(nullptr, sizeof(Counter), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
      throw std::runtime_error(std::string("cannot share a page of memory: ") +
                               std::strerror(errno));
    counter_ = new (page) Counter(0);
  }
  ~SharedCounter() { munmap(counter_, sizeof(Counter)); }
  SharedCounter(const SharedCounter&) = delete;
  SharedCounter& operator=(const SharedCounter&) = delete;
  std::size_t next() { return counter_->fetch_add(1); }

 private:
  using Counter = std::atomic<std::size_t>;
  static_assert(Counter::is_always_lock_free);
  Counter* counter_;
};

std::string json_error(const std::string& what) { return nlohmann::json{{"error", what}}.dump(); }

[[noreturn]] void serve(int file, SharedCounter& counter, std::size_t count,
                        const std::function<std::string(std::size_t)>& work) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // Ctrl-C on the parent leaves nothing behind
  signal(SIGINT, SIG_DFL);           // nor here, whatever the parent makes of it
  for (std::size_t i = counter.next(); i < count; i = counter.next()) {
    const std::uint64_t piece = i;
    if (write_all(file, &piece, sizeof piece) != 0) _exit(1);
    std::string answer;
    try {
      answer = work(i);
    } catch (const std::bad_alloc&) {
      answer = json_error(
          "needs more memory than this machine gives (fewer --jobs, ranks or microbatches)");
    } catch (const std::exception& error) {
      answer = json_error(error.what());
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
  SharedCounter counter;
  std::vector<bool> answered(count, false);
  const auto answer_of = [&](std::size_t i, const std::string& answer) {
    answered[i] = true;
    arrived(i, answer);
  };
  std::string ended = "worker ended early";
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
      serve(ends[1], counter, count, work);
    }
    close(ends[1]);
    processes[w] = {pid, ends[0], {}, {}};
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
      std::uint64_t number = 0;
      while (process.received.size() >= sizeof number) {
        std::memcpy(&number, process.received.data(), sizeof number);
        if (!process.working) {
          process.working = number;
          process.received.erase(0, sizeof number);
          continue;
        }
        if (process.received.size() < sizeof number + number) break;
        const std::string answer = process.received.substr(sizeof number, number);
        process.received.erase(0, sizeof number + number);
        answer_of(*std::exchange(process.working, {}), answer);
      }
      if (got > 0) continue;
      close(process.pipe);
      process.pipe = -1;
      --open;
      int status = 0;
      waitpid(process.pid, &status, 0);
      if (WIFSIGNALED(status))
        ended = std::string("worker killed by ") + strsignal(WTERMSIG(status));
      if (process.working) answer_of(*process.working, json_error(ended));
    }
  }
  for (std::size_t i = 0; i < count; ++i)  // nobody was left for them
    if (!answered[i]) arrived(i, json_error(ended));
}

}  // namespace polyphony::sim
