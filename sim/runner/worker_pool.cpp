#include "sim/runner/worker_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <new>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

namespace polyphony::sim {
namespace {

using namespace std::chrono_literals;

std::string json_error(const std::string& what) { return nlohmann::json{{"error", what}}.dump(); }

std::string answer_of(std::size_t i, const std::function<std::string(std::size_t)>& work) {
  try {
    return work(i);
  } catch (const std::bad_alloc&) {
    return json_error(
        "needs more memory than this machine gives (fewer --jobs, ranks or microbatches)");
  } catch (const std::exception& error) {
    return json_error(error.what());
  }
}

// Answers on their way from the threads that made them to the caller's.
class Answers {
 public:
  struct Answer {
    std::size_t i;
    std::string text;
  };

  void put(std::size_t i, std::string text) {
    const std::lock_guard lock(mutex_);
    queue_.push_back({i, std::move(text)});
    arrived_.notify_one();
  }
  // Waits for an answer, at most a tenth of a second.
  std::deque<Answer> take() {
    std::unique_lock lock(mutex_);
    arrived_.wait_for(lock, 100ms, [&] { return !queue_.empty(); });
    return std::exchange(queue_, {});
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Answer> queue_;
};

}  // namespace

std::vector<std::string> run_on_threads(int jobs, std::size_t count,
                                        const std::function<std::string(std::size_t)>& work,
                                        const std::function<void(std::size_t done)>& progress) {
  std::vector<std::string> answers(count);
  std::size_t done = 0;
  run_on_threads(jobs, count, work, [&](std::size_t i, const std::string& answer) {
    answers[i] = answer;
    if (progress) progress(++done);
  });
  return answers;
}

void run_on_threads(int jobs, std::size_t count,
                    const std::function<std::string(std::size_t)>& work, const Arrived& arrived,
                    const std::function<bool()>& stopped) {
  Answers answers;
  std::atomic<std::size_t> next{0};
  std::atomic<bool> stop{false};
  std::vector<std::jthread> threads;
  // Declared after what the threads use. If `arrived` throws, they are told to stop and joined.
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
        answers.put(i, stop ? json_error("stopped") : answer_of(i, work));
    });
  for (std::size_t left = count; left > 0;) {
    if (stopped && !stop && stopped()) stop = true;
    for (const auto& [i, text] : answers.take()) {
      arrived(i, text);
      --left;
    }
  }
}

}  // namespace polyphony::sim
