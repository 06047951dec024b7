// A cache of answers. Each question is computed once per process, and not at all if its answer was
// loaded from a file of earlier answers (a journal).
//
// An answer is identified by its key, a short text such as "estimate …". It must depend only on the
// key and on what all keys have in common: a scenario and a profile. The caller must not mix
// answers of different scenarios or profiles (question_digest() in sim/sweep/sweep.h identifies
// them).
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sim/runner/worker_pool.h"

namespace polyphony::sim {

class KnownAnswers {
 public:
  // Called for each new answer; use it to save answers.
  std::function<void(const std::string& key, const std::string& answer)> learned;
  std::string of;                 // prefix of every key; tells several questions apart
  std::function<bool()> stopped;  // once it returns true, unknown answers are failures

  void add(const std::string& key, std::string answer) { known_[key] = std::move(answer); }
  std::size_t size() const { return known_.size(); }
  std::size_t reused() const { return reused_; }  // number of answers given from the cache

  // Returns the answers in the order of `keys`. Runs work(i) for unknown ones on `jobs` threads
  // (sim/runner/worker_pool.h). Failures are returned but not cached.
  std::vector<TaskResult<std::string>> ask(int jobs, std::vector<std::string> keys,
                                           const std::function<std::string(std::size_t)>& work,
                                           const std::function<void(std::size_t done)>& progress);

 private:
  std::map<std::string, std::string> known_;
  std::size_t reused_ = 0;
};

}  // namespace polyphony::sim
