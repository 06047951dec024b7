#include "exec/autograd/beside.h"

#include <ATen/ThreadLocalState.h>

#include <future>
#include <semaphore>
#include <thread>
#include <utility>

namespace polyphony::exec {

namespace {

// Of the thread that has it, kept, and given its core until it waits: where ranks compute on all cores, one that was
// just made, or just woken, would wait for the end of somebody's time slice, some milliseconds each time.
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

  // It has begun when this returns; the future does not wait for it in its destructor.
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

// One within the other, the work innermost: each call is queued before what is beside it.
void nested(const std::vector<Move>& moves, std::size_t first, const std::function<void()>& work) {
  if (first == moves.size()) return work();
  moves[first]([&] { nested(moves, first + 1, work); });
}

}  // namespace

void beside(torch::Device device, const std::vector<Move>& moves,
            const std::function<void()>& work) {
  if (!device.is_cpu() || moves.empty()) return nested(moves, 0, work);
  thread_local SecondThread second;
  // As this thread would make them: LibTorch's modes go with it.
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
