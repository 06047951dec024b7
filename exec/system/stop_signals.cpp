#include "exec/system/stop_signals.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <future>
#include <mutex>
#include <thread>

namespace polyphony::exec {

namespace {

struct State {
  std::mutex mutex;
  std::function<void(const std::string&)> tell;
  const char* when = "before its first step: there is nothing to save";
  bool saving = false;  // true: the first signal only asks for a stop
  bool asked = false, ending = false;
};

// Returns the process's only state. It is never destroyed, because the signal thread outlives main.
State& state() {
  static State& only = *new State;
  return only;
}

// Tells the peers, whose waits then end, but waits less than a second: a peer that does not answer
// must not delay the end of this process.
void tell_within_a_second(const std::function<void(const std::string&)>& tell,
                          const std::string& reason) {
  constexpr std::chrono::milliseconds kLimit{800};
  std::packaged_task<void()> task([tell, reason] { tell(reason); });
  const std::future<void> told = task.get_future();
  std::thread(std::move(task)).detach();
  told.wait_for(kLimit);
}

// Handles one signal; returns true if the process must end.
bool take(const std::string& name) {
  State& own = state();
  std::function<void(const std::string&)> tell;
  {
    const std::scoped_lock lock(own.mutex);
    if (own.saving && !own.asked) {
      own.asked = true;
      return false;
    }
    own.ending = true;
    tell = own.tell;
    std::fprintf(stderr, "polyphony-worker: stopped by %s %s\n", name.c_str(), own.when);
    std::fflush(stderr);
  }
  if (tell) tell_within_a_second(tell, name);
  return true;
}

}  // namespace

void hear_stop_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  state();
  std::thread([signals] {
    for (;;) {
      int number = 0;
      if (sigwait(&signals, &number) != 0) continue;
      if (take(number == SIGINT ? "SIGINT" : "SIGTERM")) std::_Exit(1);
    }
  }).detach();
}

void tell_peers_by(std::function<void(const std::string&)> tell) {
  const std::scoped_lock lock(state().mutex);
  state().tell = std::move(tell);
}

bool stop_asked() {
  const std::scoped_lock lock(state().mutex);
  state().saving = true;
  state().when = "again, and ends at once: the last checkpoint is kept";
  return state().asked;
}

void all_saved() {
  const std::scoped_lock lock(state().mutex);
  state().saving = false;
  state().when = "after its last step: everything is saved";
}

void give_way_to_signal() {
  std::unique_lock lock(state().mutex);
  if (!state().ending) return;
  lock.unlock();
  for (;;) pause();
}

}  // namespace polyphony::exec
