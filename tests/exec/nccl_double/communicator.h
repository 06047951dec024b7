// Communicators of the double of NCCL, and what it knows of all of them. Internal to
// tests/exec/nccl_double/.
#pragma once

#include <nccl.h>

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/exec/nccl_double/clique.h"
#include "tests/exec/nccl_double/nccl_double.h"

// One rank's end of a communicator. It is never freed, so that its use after an abort is found.
struct ncclComm {
  std::shared_ptr<polyphony::exec::testing::nccl::Clique> clique;
  int rank = 0;
  c10::DeviceIndex device = 0;
  bool blocking = true, finalized = false;
  ncclResult_t state = ncclInProgress;  // as ncclCommGetAsyncError() returns it
  std::string ended;                    // the call that ended it
  int calls = 0;                        // in progress; of one thread
  std::thread::id thread;               // that thread
  int kernels = 0;                      // queued or running
  std::size_t splits = 0;
  std::int64_t collectives = 0;
  std::map<std::pair<int, bool>, std::int64_t> messages;  // by peer, and whether they are sends

  // The split in progress.
  std::shared_ptr<polyphony::exec::testing::nccl::Split> split;
  ncclComm** result = nullptr;

  bool ends() const { return !ended.empty(); }
  std::string name() const { return clique->name + ", rank " + std::to_string(rank); }
};

namespace polyphony::exec::testing::nccl {

// The state of all communicators. Its mutex protects it, and all communicators and cliques.
struct Library {
  std::mutex mutex;
  std::condition_variable changed;
  Seconds patience{20};
  std::vector<std::unique_ptr<ncclComm>> communicators;
  std::vector<std::string> mistakes;
  Made made;
  std::size_t taken = 0;                   // communicators that take_left() has seen
  std::map<std::string, std::string> ids;  // unique ids, with the clique that used each
  std::map<std::string, std::shared_ptr<Clique>> joining;  // by unique ids
  std::map<int, int> breaks;                               // break_next_kernel()
  std::map<int, std::function<void()>> faults;             // before_next_split()
  int cliques = 0, unique_ids = 0;
};
Library& library();

using Lock = std::unique_lock<std::mutex>;

// With the lock held: sets what ncclGetLastError() returns.
ncclResult_t failed(ncclResult_t result, const std::string& text);
// With the lock held: also records a mistake in `call`; `on` may be null.
ncclResult_t mistaken(ncclResult_t result, const std::string& call, const ncclComm* on,
                      const std::string& text);

// With the lock held: what is wrong with a call on this communicator, whether or not it is ready;
// ncclSuccess if nothing is.
ncclResult_t check_alive(const std::string& call, const ncclComm* on);
// Also if it is not ready, or if another thread calls it.
ncclResult_t check_ready(const std::string& call, ncclComm* on);
// Returns whether this thread is between ncclGroupStart() and ncclGroupEnd().
bool in_group();
// Looks whether the operation in progress has ended.
void poll(ncclComm& on);

// With the lock held, in a call of this communicator: waits. Returns false if `comes` did not
// return true before the communicator was aborted or the patience ended, which `timed_out` tells.
template <class Comes>
bool wait(Lock& lock, const ncclComm& on, const Comes& comes, bool& timed_out) {
  timed_out =
      !library().changed.wait_for(lock, library().patience, [&] { return on.ends() || comes(); });
  return !timed_out && !on.ends();
}

}  // namespace polyphony::exec::testing::nccl
