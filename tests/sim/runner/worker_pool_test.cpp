#include "sim/runner/worker_pool.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <new>
#include <set>
#include <stdexcept>
#include <thread>

namespace polyphony::sim {
namespace {

using Result = TaskResult<std::string>;

std::map<std::size_t, Result> answered(int jobs, std::size_t count,
                                       const std::function<std::string(std::size_t)>& work) {
  std::map<std::size_t, Result> answers;
  const std::thread::id caller = std::this_thread::get_id();
  run_on_threads(jobs, count, work, [&](std::size_t i, const Result& answer) {
    CHECK(std::this_thread::get_id() == caller);
    CHECK(answers.emplace(i, answer).second);  // once for each
  });
  CHECK(answers.size() == count);
  return answers;
}

}  // namespace

TEST_CASE("a task that takes long keeps one thread busy, the others take the rest") {
  std::atomic<int> done{0};
  std::atomic<bool> timed_out{false};
  // The first task waits until all others are done: it would wait forever if one of them waited for
  // its thread.
  const auto answers = answered(2, 20, [&](std::size_t i) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (i == 0 && done < 19 && !timed_out) {
      timed_out = std::chrono::steady_clock::now() > end;
      std::this_thread::yield();
    }
    ++done;
    return std::to_string(i);
  });
  CHECK(!timed_out);
  for (const auto& [i, answer] : answers) CHECK(std::get<std::string>(answer) == std::to_string(i));
}

TEST_CASE("one job runs one task at a time") {
  std::atomic<int> running{0}, most{0};
  answered(1, 50, [&](std::size_t) {
    most = std::max(most.load(), ++running);
    std::this_thread::yield();
    --running;
    return std::string();
  });
  CHECK(most == 1);
}

TEST_CASE("a task that throws fails with that text, and the others go on") {
  const auto answers = answered(3, 12, [](std::size_t i) {
    if (i == 4) throw std::bad_alloc();
    if (i == 5) throw std::runtime_error("no such task");
    return std::string(100000, 'a');
  });
  for (const auto& [i, answer] : answers)
    if (i != 4 && i != 5) CHECK(std::get<std::string>(answer) == std::string(100000, 'a'));
  CHECK(std::get<TaskFailed>(answers.at(4)).what.starts_with("needs more memory"));
  CHECK(std::get<TaskFailed>(answers.at(5)).what == "no such task");
}

TEST_CASE("results come in the order of the tasks, of any type") {
  std::size_t most = 0;
  const auto results = run_on_threads(
      3, 20,
      [](std::size_t i) {
        if (i == 7) throw std::runtime_error("seven");
        return static_cast<double>(i) / 2;
      },
      [&](std::size_t done) { most = std::max(most, done); });
  REQUIRE(results.size() == 20);
  CHECK(most == 20);
  for (std::size_t i = 0; i < 20; ++i)
    if (i == 7)
      CHECK(std::get<TaskFailed>(results[i]).what == "seven");
    else
      CHECK(std::get<double>(results[i]) == static_cast<double>(i) / 2);
}

TEST_CASE("once stopped, no further task begins") {
  std::atomic<int> begun{0};
  std::size_t stopped = 0, total = 0;
  run_on_threads(
      2, 1000,
      [&](std::size_t) {
        ++begun;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        return std::string("done");
      },
      [&](std::size_t, const Result& answer) {
        ++total;
        const auto* failed = std::get_if<TaskFailed>(&answer);
        stopped += failed && failed->what == "stopped" ? 1 : 0;
      },
      [&] { return begun > 3; });
  CHECK(total == 1000);
  CHECK(stopped > 800);  // stopped is asked ten times a second: some 20 tasks of 5 ms each
  CHECK(static_cast<std::size_t>(begun) == total - stopped);
}

TEST_CASE("an exception of the caller's callback ends the threads") {
  CHECK_THROWS_AS(run_on_threads(
                      2, 100, [](std::size_t) { return std::string("x"); },
                      [](std::size_t, const Result&) { throw std::runtime_error("no"); }),
                  std::runtime_error);
}

}  // namespace polyphony::sim
