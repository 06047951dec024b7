#include "tests/exec/device_double/queued_transport.h"

#include "tests/exec/device_double/queued_device.h"

namespace polyphony::exec::testing {

namespace {

using torch::Tensor;
using Counts = std::vector<std::int64_t>;

class QueuedCommunicator : public Communicator {
 public:
  explicit QueuedCommunicator(std::unique_ptr<Communicator> inner) : inner_(std::move(inner)) {}
  int index() const override { return inner_->index(); }
  int size() const override { return inner_->size(); }

  void all_reduce(Tensor& tensor, Reduction reduction) override {
    queue(tensor, [inner = inner_, seen = seen_by_kernels(tensor), reduction]() mutable {
      inner->all_reduce(seen, reduction);
    });
  }
  void all_gather(const Tensor& mine, Tensor& all, const Counts& counts) override {
    queue(all, [inner = inner_, from = seen_by_kernels(mine), to = seen_by_kernels(all),
                counts]() mutable { inner->all_gather(from, to, counts); });
  }
  void reduce_scatter(const Tensor& all, Tensor& mine, const Counts& counts) override {
    queue(all, [inner = inner_, from = seen_by_kernels(all), to = seen_by_kernels(mine),
                counts]() mutable { inner->reduce_scatter(from, to, counts); });
  }
  void all_to_all(const Tensor& send, Tensor& receive, const Counts& send_counts,
                  const Counts& receive_counts) override {
    queue(send,
          [inner = inner_, from = seen_by_kernels(send), to = seen_by_kernels(receive), send_counts,
           receive_counts]() mutable { inner->all_to_all(from, to, send_counts, receive_counts); });
  }

 private:
  static void queue(const Tensor& where, std::function<void()> call) {
    where.is_cpu() ? call() : queue_on_current(where.device(), std::move(call));
  }
  std::shared_ptr<Communicator> inner_;
};

}  // namespace

std::unique_ptr<Communicator> QueuedTransport::make_group(const std::string& name,
                                                          const std::vector<Rank>& members) {
  return std::make_unique<QueuedCommunicator>(inner().make_group(name, members));
}

void QueuedTransport::exchange(const std::vector<Transfer>& transfers) {
  if (transfers.empty() || transfers.front().tensor.is_cpu()) return inner().exchange(transfers);
  std::vector<Transfer> seen = transfers;
  for (Transfer& transfer : seen) transfer.tensor = seen_by_kernels(transfer.tensor);
  queue_on_current(transfers.front().tensor.device(), [this, seen] { inner().exchange(seen); });
}

}  // namespace polyphony::exec::testing
