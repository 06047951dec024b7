#include "exec/autograd/beside.h"

#include <ATen/ThreadLocalState.h>

#include <future>

namespace polyphony::exec {

namespace {

// One within the other, the work innermost: each call is queued before what is beside it.
void nested(const std::vector<Move>& moves, std::size_t first, const std::function<void()>& work) {
  if (first == moves.size()) return work();
  moves[first]([&] { nested(moves, first + 1, work); });
}

}  // namespace

void beside(torch::Device device, const std::vector<Move>& moves,
            const std::function<void()>& work) {
  if (!device.is_cpu() || moves.empty()) return nested(moves, 0, work);
  // As this thread would make them: LibTorch's modes go with it.
  std::future<void> made = std::async(std::launch::async, [&moves, state = at::ThreadLocalState()] {
    const at::ThreadLocalStateGuard as_there(state);
    for (const Move& move : moves) move({});
  });
  work();  // should it throw, the future waits for the thread
  made.get();
}

}  // namespace polyphony::exec
