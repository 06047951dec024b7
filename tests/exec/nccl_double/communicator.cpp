#include "tests/exec/nccl_double/communicator.h"

#include <algorithm>
#include <atomic>

namespace polyphony::exec::testing::nccl {

Library& library() {
  static auto* const one = new Library;  // communicators outlive main()
  return *one;
}

namespace {

// NCCL's last error is one text for the whole process; its callers may hold it for ever.
std::atomic<const char*> last_error{""};

}  // namespace

ncclResult_t failed(ncclResult_t result, const std::string& text) {
  static auto* const texts = new std::set<std::string>;
  last_error = texts->insert(text).first->c_str();
  return result;
}

ncclResult_t mistaken(ncclResult_t result, const std::string& call, const ncclComm* on,
                      const std::string& text) {
  library().mistakes.push_back(call + (on != nullptr ? " on " + on->name() : "") + ": " + text);
  return failed(result, library().mistakes.back());
}

ncclResult_t check_alive(const std::string& call, const ncclComm* on) {
  if (on == nullptr) return mistaken(ncclInvalidArgument, call, nullptr, "no communicator");
  const auto& all = library().communicators;
  if (std::none_of(all.begin(), all.end(), [&](const auto& one) { return one.get() == on; }))
    return mistaken(ncclInvalidArgument, call, nullptr, "not a communicator");
  if (on->ends())
    return mistaken(ncclInvalidArgument, call, on, "it was ended before, by " + on->ended);
  return ncclSuccess;
}

ncclResult_t check_ready(const std::string& call, ncclComm* on) {
  if (const ncclResult_t result = check_alive(call, on); result != ncclSuccess) return result;
  if (on->calls > 0 && on->thread != std::this_thread::get_id())
    return mistaken(ncclInvalidUsage, call, on, "another thread is in a call on it");
  if (on->finalized) return mistaken(ncclInvalidUsage, call, on, "it was finalized before");
  if (on->state == ncclInProgress)
    return mistaken(ncclInvalidArgument, call, on,
                    "the operation before has not returned ncclSuccess yet");
  if (on->state != ncclSuccess)
    return failed(on->state, call + " on " + on->name() + ": it has failed");
  poll(*on);  // a result that was late is written now
  return ncclSuccess;
}

void poll(ncclComm& on) {
  if (!on.split) {
    if (on.state == ncclInProgress && on.clique->joined) on.state = ncclSuccess;
    return;
  }
  if (!on.split->done) return;
  // The result is written one look after the state, as if the thread that writes it were late.
  if (std::exchange(on.state, ncclSuccess) == ncclInProgress) return;
  std::atomic_ref<ncclComm*>(*on.result) = on.split->made[static_cast<std::size_t>(on.rank)];
  on.split = nullptr;
}

std::vector<std::string> take_mistakes() {
  const std::scoped_lock lock(library().mutex);
  return std::exchange(library().mistakes, {});
}

std::vector<std::string> take_left() {
  const std::scoped_lock lock(library().mutex);
  Library& all = library();
  std::vector<std::string> left;
  for (; all.taken < all.communicators.size(); ++all.taken)
    if (const ncclComm& one = *all.communicators[all.taken]; !one.ends())
      left.push_back(one.name());
  return left;
}

Made take_made() {
  const std::scoped_lock lock(library().mutex);
  return std::exchange(library().made, {});
}

void be_patient(Seconds time) {
  const std::scoped_lock lock(library().mutex);
  library().patience = time;
}

void break_next_kernel(int device, int size) {
  const std::scoped_lock lock(library().mutex);
  library().breaks[device] = size;
}

void before_next_split(int device, std::function<void()> fault) {
  const std::scoped_lock lock(library().mutex);
  library().faults[device] = std::move(fault);
}

}  // namespace polyphony::exec::testing::nccl

extern "C" {

const char* ncclGetLastError(ncclComm_t) { return polyphony::exec::testing::nccl::last_error; }

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error";
    case ncclSystemError:
      return "unhandled system error";
    case ncclInternalError:
      return "internal error";
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
    case ncclNumResults:
      break;
  }
  return "unknown result code";
}

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

}  // extern "C"
