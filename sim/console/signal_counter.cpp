#include "sim/console/signal_counter.h"

namespace polyphony::sim {
namespace {

volatile std::sig_atomic_t signals_seen = 0;

extern "C" void count_signal(int) { signals_seen = signals_seen + 1; }

}  // namespace

SignalCounter::SignalCounter(const std::vector<int>& signals, Second second) {
  signals_seen = 0;
  struct sigaction action{};
  action.sa_handler = count_signal;
  if (second == Second::ends) action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int signal : signals)
    sigaction(signal, &action, &before_.emplace_back(signal, action).second);
}

SignalCounter::~SignalCounter() {
  for (const auto& [signal, before] : before_) sigaction(signal, &before, nullptr);
}

int SignalCounter::seen() { return signals_seen; }

}  // namespace polyphony::sim
