// Runs independent tasks on several threads.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace polyphony::sim {

// Why a task has no answer: the text of the exception that it threw, or "stopped".
struct TaskFailed {
  std::string what;
};
template <class Answer>
using TaskResult = std::variant<Answer, TaskFailed>;

// Runs work(i) for every i in [0, count) on `jobs` threads; a free thread takes the next i. Calls
// ended(i, failure) on the calling thread exactly once for each i, as tasks end. `work` is called
// from several threads at a time.
//
// `stopped` is asked ten times a second: once it returns true, tasks that run are finished, and all
// others have failed.
using TaskEnded = std::function<void(std::size_t i, const std::optional<TaskFailed>& failure)>;
void run_tasks(int jobs, std::size_t count, const std::function<void(std::size_t)>& work,
               const TaskEnded& ended, const std::function<bool()>& stopped = {});

// The same for tasks with an answer: calls arrived(i, result) for each, on the calling thread.
template <class Work, class Answer = std::invoke_result_t<const Work&, std::size_t>>
void run_on_threads(
    int jobs, std::size_t count, const Work& work,
    const std::type_identity_t<std::function<void(std::size_t, TaskResult<Answer>)>>& arrived,
    const std::function<bool()>& stopped = {}) {
  std::vector<std::optional<Answer>> answers(count);  // each written by one thread
  run_tasks(
      jobs, count, [&](std::size_t i) { answers[i] = work(i); },
      [&](std::size_t i, const std::optional<TaskFailed>& failure) {
        if (failure)
          arrived(i, TaskResult<Answer>(std::in_place_index<1>, *failure));
        else
          arrived(i, TaskResult<Answer>(std::in_place_index<0>, std::move(*answers[i])));
        answers[i].reset();
      },
      stopped);
}

// Returns the results in the order of i; calls `progress` with the number of results so far.
template <class Work, class Answer = std::invoke_result_t<const Work&, std::size_t>>
std::vector<TaskResult<Answer>> run_on_threads(
    int jobs, std::size_t count, const Work& work,
    const std::function<void(std::size_t done)>& progress) {
  std::vector<TaskResult<Answer>> results(
      count, TaskResult<Answer>(std::in_place_index<1>, TaskFailed{"not run"}));
  std::size_t done = 0;
  run_on_threads(jobs, count, work, [&](std::size_t i, TaskResult<Answer> result) {
    results[i] = std::move(result);
    if (progress) progress(++done);
  });
  return results;
}

}  // namespace polyphony::sim
