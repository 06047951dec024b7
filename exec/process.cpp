#include "exec/process.h"

#include <linux/sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include <c10/util/Logging.h>

#include "exec/torch_pch.h"

namespace polyphony::exec {

namespace {

// Of the calling thread. Only a hint: refusal changes nothing but speed.
void set_policy(int policy) {
  const int priority = 0;
  syscall(SYS_sched_setscheduler, 0, policy, &priority);
}

int cores() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

}  // namespace

void share_cores(int local_ranks) {
  if (!cores_suffice(local_ranks)) set_policy(SCHED_BATCH);
  at::set_num_threads(std::max(1, cores() / std::max(1, local_ranks)));
}

void quieten_libtorch() {
  constexpr int kErrors = 2;
  if (std::getenv("TORCH_CPP_LOG_LEVEL") == nullptr) FLAGS_caffe2_log_level = kErrors;
}

void be_prompt() { set_policy(SCHED_NORMAL); }

bool cores_suffice(int local_ranks) { return local_ranks <= cores(); }

}  // namespace polyphony::exec
