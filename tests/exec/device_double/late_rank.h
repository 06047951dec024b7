// Delays a rank at a collective that the other ranks overlap with other work; tests whether they
// did that work meanwhile.
#pragma once

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "exec/transport/communicator.h"
#include "tests/exec/device_double/queued_device.h"

namespace polyphony::exec::testing {

// How often the devices of all ranks except the last one have finished the work that was overlapped
// with a call.
using Done = std::atomic<int>;

// Lets the last rank start an overlapped call only after the devices of the others have finished
// the overlapping work.
class LateRank : public Communicator {
 public:
  LateRank(Communicator& inner, torch::Device device, Done& done)
      : inner_(inner), device_(device), done_(done) {}
  int index() const override { return inner_.index(); }
  int size() const override { return inner_.size(); }
  void all_reduce(torch::Tensor& tensor, Reduction reduction) override {
    inner_.all_reduce(tensor, reduction);
  }
  void all_gather(const torch::Tensor& mine, torch::Tensor& all,
                  const std::vector<std::int64_t>& counts) override {
    inner_.all_gather(mine, all, counts);
  }
  void reduce_scatter(const torch::Tensor& all, torch::Tensor& mine,
                      const std::vector<std::int64_t>& counts) override {
    inner_.reduce_scatter(all, mine, counts);
  }
  void all_to_all(const torch::Tensor& send, torch::Tensor& receive,
                  const std::vector<std::int64_t>& sent,
                  const std::vector<std::int64_t>& received) override {
    inner_.all_to_all(send, receive, sent, received);
  }
  void all_reduce_beside(torch::Tensor& tensor, Reduction reduction,
                         const std::function<void()>& beside) override {
    call(beside, [&](const auto& seen) { inner_.all_reduce_beside(tensor, reduction, seen); });
  }
  void reduce_scatter_beside(const torch::Tensor& all, torch::Tensor& mine,
                             const std::vector<std::int64_t>& counts,
                             const std::function<void()>& beside) override {
    call(beside, [&](const auto& seen) { inner_.reduce_scatter_beside(all, mine, counts, seen); });
  }
  void all_gather_beside(const torch::Tensor& mine, torch::Tensor& all,
                         const std::vector<std::int64_t>& counts,
                         const std::function<void()>& beside) override {
    call(beside, [&](const auto& seen) { inner_.all_gather_beside(mine, all, counts, seen); });
  }
  void all_to_all_beside(const torch::Tensor& send, torch::Tensor& receive,
                         const std::vector<std::int64_t>& sent,
                         const std::vector<std::int64_t>& received,
                         const std::function<void()>& beside) override {
    call(beside,
         [&](const auto& seen) { inner_.all_to_all_beside(send, receive, sent, received, seen); });
  }
  int works() const { return works_; }

 private:
  template <class Inner>
  void call(const std::function<void()>& beside, const Inner& inner) {
    if (depth_ == 0) {
      ++works_;
      if (index() + 1 == size()) await(works_ * (size() - 1));
    }
    ++depth_;
    const int here = ++calls_;
    inner([&] {
      beside();
      // The work of the innermost call is the overlapping work itself.
      if (calls_ == here && index() + 1 < size()) queue_on_current(device_, [this] { ++done_; });
    });
    --depth_;
  }
  void await(int done) const {
    for (int look = 0; look < 20000 && done_ < done; ++look)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    CHECK(done_ == done);
  }

  Communicator& inner_;
  torch::Device device_;
  Done& done_;
  int depth_ = 0, calls_ = 0, works_ = 0;
};

}  // namespace polyphony::exec::testing
