#include "exec/autograd/beside.h"

#include <ATen/ThreadLocalState.h>

#include <future>
#include <semaphore>
#include <thread>
#include <utility>

namespace polyphony::exec {

namespace {

// A second thread that its owner keeps and to which it hands over its core until the second thread
// waits. If ranks compute on all cores, a thread that was just created, or just woken, would
// otherwise wait for the end of another thread's time slice, some milliseconds each time.
class SecondThread {
 public:
  SecondThread() : thread_([this] { run(); }) {}
  ~SecondThread() {
    next_ = {};
    go_.release();
    thread_.join();
  }
  SecondThread(const SecondThread&) = delete;
  SecondThread& operator=(const SecondThread&) = delete;

  // The task has begun when this returns. The future's destructor does not wait for it.
  template <class Task>
  std::future<void> begin(Task task) {
    next_ = std::packaged_task<void()>(std::move(task));
    std::future<void> made = next_.get_future();
    go_.release();
    begun_.acquire();
    return made;
  }

 private:
  void run() {
    for (;;) {
      go_.acquire();
      std::packaged_task<void()> task = std::move(next_);
      begun_.release();
      if (!task.valid()) return;
      task();
    }
  }

  std::packaged_task<void()> next_;
  std::binary_semaphore go_{0}, begun_{0};
  std::thread thread_;
};

// Nests the calls, with the work innermost: each call is queued before the work that it overlaps
// with.
void nested(const std::vector<Move>& moves, std::size_t first, const std::function<void()>& work) {
  if (first == moves.size()) return work();
  moves[first]([&] { nested(moves, first + 1, work); });
}

}  // namespace

void beside(torch::Device device, const std::vector<Move>& moves,
            const std::function<void()>& work) {
  if (!device.is_cpu() || moves.empty()) return nested(moves, 0, work);
  thread_local SecondThread second;
  // The second thread uses this thread's LibTorch modes (grad mode and the like).
  std::future<void> made = second.begin([&moves, state = at::ThreadLocalState()] {
    const at::ThreadLocalStateGuard as_there(state);
    for (const Move& move : moves) move({});
  });
  try {
    work();
  } catch (...) {
    made.wait();
    throw;
  }
  made.get();
}

}  // namespace polyphony::exec
