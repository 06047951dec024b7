#include "sim/runner/worker_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

namespace polyphony::sim {
namespace {

using namespace std::chrono_literals;

std::optional<TaskFailed> failure_of(std::size_t i, const std::function<void(std::size_t)>& work) {
  try {
    work(i);
    return {};
  } catch (const std::bad_alloc&) {
    return TaskFailed{
        "needs more memory than this machine gives (fewer --jobs, ranks or microbatches)"};
  } catch (const std::exception& error) {
    return TaskFailed{error.what()};
  }
}

// Tasks that ended, on their way from the threads that ran them to the caller's.
class Ended {
 public:
  struct Task {
    std::size_t i;
    std::optional<TaskFailed> failure;
  };

  void put(std::size_t i, std::optional<TaskFailed> failure) {
    const std::lock_guard lock(mutex_);
    queue_.push_back({i, std::move(failure)});
    arrived_.notify_one();
  }
  // Waits for a task to end, at most a tenth of a second.
  std::deque<Task> take() {
    std::unique_lock lock(mutex_);
    arrived_.wait_for(lock, 100ms, [&] { return !queue_.empty(); });
    return std::exchange(queue_, {});
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Task> queue_;
};

}  // namespace

void run_tasks(int jobs, std::size_t count, const std::function<void(std::size_t)>& work,
               const TaskEnded& ended, const std::function<bool()>& stopped) {
  Ended tasks;
  std::atomic<std::size_t> next{0};
  std::atomic<bool> stop{false};
  std::vector<std::jthread> threads;
  // Declared after what the threads use. If `ended` throws, they are told to stop and joined.
  struct StopAtEnd {
    std::atomic<bool>& stop;
    std::vector<std::jthread>& threads;
    ~StopAtEnd() {
      stop = true;
      threads.clear();
    }
  } stop_at_end{stop, threads};
  const std::size_t workers = std::min(count, static_cast<std::size_t>(std::max(1, jobs)));
  for (std::size_t w = 0; w < workers; ++w)
    threads.emplace_back([&] {
      for (std::size_t i = next++; i < count; i = next++)
        tasks.put(i, stop ? TaskFailed{"stopped"} : failure_of(i, work));
    });
  for (std::size_t left = count; left > 0;) {
    if (stopped && !stop && stopped()) stop = true;
    for (const auto& [i, failure] : tasks.take()) {
      ended(i, failure);
      --left;
    }
  }
}

}  // namespace polyphony::sim
