// Counts signals that ask this process to end while an object of this class lives; the caller
// decides what they mean. The destructor restores the handlers from before.
#pragma once

#include <csignal>
#include <utility>
#include <vector>

namespace polyphony::sim {

class SignalCounter {
 public:
  // What the second signal of a kind does: it is counted too, or ends the process.
  enum class Second { counts, ends };
  SignalCounter(const std::vector<int>& signals, Second second);
  ~SignalCounter();
  SignalCounter(const SignalCounter&) = delete;
  SignalCounter& operator=(const SignalCounter&) = delete;
  static int seen();  // signals that the newest object counted

 private:
  std::vector<std::pair<int, struct sigaction>> before_;
};

}  // namespace polyphony::sim
