#include "exec/autograd/in_order.h"

#include <atomic>
#include <mutex>

namespace polyphony::exec {

namespace {

std::atomic<bool> order_kept{false};

// The setting is process-wide.
void change(int by) {
  static std::mutex mutex;
  static int inside = 0;
  const std::scoped_lock lock(mutex);
  inside += by;
  at::globalContext().setDeterministicFillUninitializedMemory(false);
  at::globalContext().setDeterministicAlgorithms(inside > 0, /*warn_only=*/false);
}

}  // namespace

void keep_order(bool keep) { order_kept = keep; }
bool keeps_order() { return order_kept; }

InOrder::InOrder() : on_(order_kept) {
  if (on_) change(1);
}
InOrder::~InOrder() {
  if (on_) change(-1);
}

void add_at(torch::Tensor& table, const torch::Tensor& ids, const torch::Tensor& rows) {
  const InOrder in_order;  // a GPU adds rows of one id by atomics otherwise
  table.index_add_(0, ids, rows);
}

}  // namespace polyphony::exec
