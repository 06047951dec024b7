// Answers of worker processes by what was asked: each question is worked out once, whoever asks again,
// and what a file of earlier answers knows is not worked out at all.
//   key       what is asked, in a few words and numbers ("estimate …"); the same for the same work
//   learned   called as answers arrive: who wants to keep them writes them down there
// Pure work alone: an answer depends on its key and on what all keys have in common (a scenario, a
// profile), which is the caller's to keep apart (sim/sweep/sweep.h: question_digest).
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace polyphony::sim {

class KnownAnswers {
 public:
  std::function<void(const std::string& key, const std::string& answer)> learned;
  std::string of;                 // which of several questions: stands before every key
  std::function<bool()> stopped;  // once it says so, nothing more is worked out: "error"

  void add(const std::string& key, std::string answer) { known_[key] = std::move(answer); }
  std::size_t size() const { return known_.size(); }
  std::size_t reused() const { return reused_; }  // asked for, and known from before

  // By key, in their order; work(i) for those that are not known, `jobs` at a time
  // (sim/runner/worker_pool.h). Answers that say "error" are given, and not kept.
  std::vector<std::string> ask(int jobs, std::vector<std::string> keys,
                               const std::function<std::string(std::size_t)>& work,
                               const std::function<void(std::size_t done)>& progress);

 private:
  std::map<std::string, std::string> known_;
  std::size_t reused_ = 0;
};

}  // namespace polyphony::sim
