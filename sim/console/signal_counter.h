// Signals that ask this process to end, counted while one of these lives: what they mean is its
// owner's to say. The handlers from before are there again afterwards.
#pragma once

#include <csignal>
#include <utility>
#include <vector>

namespace polyphony::sim {

class SignalCounter {
 public:
  // What the second of a signal does: it is counted too, or ends the process.
  enum class Second { counts, ends };
  SignalCounter(const std::vector<int>& signals, Second second);
  ~SignalCounter();
  SignalCounter(const SignalCounter&) = delete;
  SignalCounter& operator=(const SignalCounter&) = delete;
  static int seen();  // by the last one made

 private:
  std::vector<std::pair<int, struct sigaction>> before_;
};

}  // namespace polyphony::sim
