#include "exec/transport/limited.h"

#include <algorithm>
#include <numeric>
#include <thread>

namespace polyphony::exec {
namespace {

std::int64_t size_in_bytes(const torch::Tensor& tensor) {
  return static_cast<std::int64_t>(tensor.nbytes());
}

class LimitedCommunicator : public Communicator {
 public:
  LimitedCommunicator(std::unique_ptr<Communicator> inner, std::shared_ptr<TokenBucket> bucket)
      : inner_(std::move(inner)), bucket_(std::move(bucket)) {}
  int index() const override { return inner_->index(); }
  int size() const override { return inner_->size(); }
  void all_reduce(torch::Tensor& tensor, Reduction reduction) override {
    bucket_->wait(2 * others(size_in_bytes(tensor)));
    inner_->all_reduce(tensor, reduction);
  }
  void all_gather(const torch::Tensor& mine, torch::Tensor& all,
                  const std::vector<std::int64_t>& counts) override {
    bucket_->wait((size() - 1) * size_in_bytes(mine));
    inner_->all_gather(mine, all, counts);
  }
  void reduce_scatter(const torch::Tensor& all, torch::Tensor& mine,
                      const std::vector<std::int64_t>& counts) override {
    bucket_->wait(others(size_in_bytes(all)));
    inner_->reduce_scatter(all, mine, counts);
  }
  void all_reduce_beside(torch::Tensor& tensor, Reduction reduction,
                         const std::function<void()>& beside) override {
    bucket_->wait(2 * others(size_in_bytes(tensor)));
    inner_->all_reduce_beside(tensor, reduction, beside);
  }
  void reduce_scatter_beside(const torch::Tensor& all, torch::Tensor& mine,
                             const std::vector<std::int64_t>& counts,
                             const std::function<void()>& beside) override {
    bucket_->wait(others(size_in_bytes(all)));
    inner_->reduce_scatter_beside(all, mine, counts, beside);
  }
  void all_gather_beside(const torch::Tensor& mine, torch::Tensor& all,
                         const std::vector<std::int64_t>& counts,
                         const std::function<void()>& beside) override {
    bucket_->wait((size() - 1) * size_in_bytes(mine));
    inner_->all_gather_beside(mine, all, counts, beside);
  }
  void all_to_all(const torch::Tensor& send, torch::Tensor& receive,
                  const std::vector<std::int64_t>& send_counts,
                  const std::vector<std::int64_t>& receive_counts) override {
    wait_to_others(send, send_counts);
    inner_->all_to_all(send, receive, send_counts, receive_counts);
  }
  void all_to_all_beside(const torch::Tensor& send, torch::Tensor& receive,
                         const std::vector<std::int64_t>& send_counts,
                         const std::vector<std::int64_t>& receive_counts,
                         const std::function<void()>& beside) override {
    wait_to_others(send, send_counts);
    inner_->all_to_all_beside(send, receive, send_counts, receive_counts, beside);
  }

 private:
  void wait_to_others(const torch::Tensor& send, const std::vector<std::int64_t>& counts) {
    const std::int64_t own = counts[static_cast<std::size_t>(index())];
    const std::int64_t all = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
    if (all > 0) bucket_->wait(size_in_bytes(send) / all * (all - own));
  }
  std::int64_t others(std::int64_t whole) const { return whole / size() * (size() - 1); }

  std::unique_ptr<Communicator> inner_;
  std::shared_ptr<TokenBucket> bucket_;
};

}  // namespace

TokenBucket::Clock::time_point TokenBucket::take(std::int64_t bytes, Clock::time_point now) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::chrono::duration<double> own(static_cast<double>(bytes) / rate_.value);
  free_ = std::max(free_, now) + std::chrono::duration_cast<Clock::duration>(own);
  return free_;
}

void TokenBucket::wait(std::int64_t bytes) {
  if (bytes > 0) std::this_thread::sleep_until(take(bytes, Clock::now()));
}

std::unique_ptr<Communicator> LimitedTransport::make_group(const std::string& name,
                                                           const std::vector<Rank>& members) {
  return std::make_unique<LimitedCommunicator>(inner().make_group(name, members), bucket_);
}

void LimitedTransport::exchange(const std::vector<Transfer>& transfers) {
  std::int64_t bytes = 0;
  for (const Transfer& transfer : transfers)
    if (transfer.sends && transfer.peer != rank()) bytes += size_in_bytes(transfer.tensor);
  bucket_->wait(bytes);
  inner().exchange(transfers);
}

}  // namespace polyphony::exec
