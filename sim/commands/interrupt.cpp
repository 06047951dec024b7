#include "sim/commands/interrupt.h"

namespace polyphony::sim {
namespace {

volatile std::sig_atomic_t asked_to_stop = 0;

extern "C" void hear(int) { asked_to_stop = 1; }

}  // namespace

Interruptible::Interruptible() {
  asked_to_stop = 0;
  struct sigaction action{};
  action.sa_handler = hear;
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // the second one ends the process
  sigaction(SIGINT, &action, &before_);
}

Interruptible::~Interruptible() { sigaction(SIGINT, &before_, nullptr); }

bool Interruptible::asked() { return asked_to_stop != 0; }

}  // namespace polyphony::sim
