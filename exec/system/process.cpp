#include "exec/system/process.h"

#include <linux/sched.h>
#include <malloc.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <mutex>
#include <thread>

#include <c10/util/Logging.h>

#include "exec/torch_pch.h"

namespace polyphony::exec {

namespace {

// Sets the scheduling policy of the calling thread. It affects only speed, so a failure is ignored.
void set_policy(int policy) {
  const int priority = 0;
  syscall(SYS_sched_setscheduler, 0, policy, &priority);
}

Seconds read(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return Seconds(static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec));
}

int cores() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

// Returns the number of cores on which taskset, a container or the launcher lets this process run.
// With more threads than that, two threads on one core would spin and wait for each other at the
// end of every parallel loop.
int allowed_cores() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : cores();
}

}  // namespace

void share_cores(int local_ranks, bool paced) {
  if (!cores_suffice(local_ranks) && !paced) set_policy(SCHED_BATCH);
  if (paced) prctl(PR_SET_TIMERSLACK, 1UL);  // nanoseconds; sleeps end 50 us late by default
  at::set_num_threads(std::clamp(cores() / std::max(1, local_ranks), 1, allowed_cores()));
}

Seconds steady_now() { return std::chrono::steady_clock::now().time_since_epoch(); }

Seconds processor_now() {
  return at::get_num_threads() == 1 ? read(CLOCK_THREAD_CPUTIME_ID) : process_processor_now();
}

Seconds process_processor_now() { return read(CLOCK_PROCESS_CPUTIME_ID); }

void keep_freed_memory() {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the largest that glibc accepts
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
}

void return_freed_memory() { malloc_trim(0); }

void quieten_libtorch() {
  constexpr int kErrors = 2;
  static std::once_flag once;  // ranks may be threads of one process
  std::call_once(once, [] {
    if (std::getenv("TORCH_CPP_LOG_LEVEL") == nullptr) FLAGS_caffe2_log_level = kErrors;
  });
}

void quieten_kineto() {
  // Above ERROR, the highest level. Source: Kineto, libkineto/include/ILoggerObserver.h.
  constexpr const char* kNothing = "5";
  ::setenv("KINETO_LOG_LEVEL", kNothing, 0);
}

void be_prompt() { set_policy(SCHED_NORMAL); }

bool cores_suffice(int local_ranks) { return local_ranks <= cores(); }

}  // namespace polyphony::exec
