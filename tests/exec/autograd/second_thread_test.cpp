// Work overlapped with a CPU's GEMMs (exec/autograd/beside.h): on one second thread, started before
// them.
#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "exec/autograd/beside.h"

namespace polyphony::exec {
namespace {

const torch::Device kCpu(torch::kCPU);

}  // namespace

TEST_SUITE("second thread") {
  TEST_CASE("calls run in order on one second thread of the caller, without blocking the caller") {
    std::vector<std::thread::id> threads;
    std::vector<int> order;
    for (int i = 0; i < 3; ++i) {
      std::atomic<bool> worked = false;
      const auto waits = [&](const auto&) {
        worked.wait(false);  // would block for ever if the work waited for it
        threads.push_back(std::this_thread::get_id());
        order.push_back(2 * i);
      };
      const auto next = [&](const auto&) { order.push_back(2 * i + 1); };
      beside(kCpu, {waits, next}, [&] {
        worked = true;
        worked.notify_one();
      });
    }
    CHECK(order == std::vector<int>{0, 1, 2, 3, 4, 5});
    for (const std::thread::id id : threads) {
      CHECK(id == threads.front());
      CHECK(id != std::this_thread::get_id());
    }
  }

  TEST_CASE("each caller has a second thread of its own, with the caller's LibTorch modes") {
    std::atomic<int> met = 0;
    std::array<bool, 2> recorded{};
    const auto rank = [&](std::size_t index) {
      const torch::autograd::AutoGradMode mode(index == 0);
      const auto meets = [&](const auto&) {
        recorded[index] = torch::GradMode::is_enabled();
        ++met;
        met.notify_all();
        for (int now = met; now < 2; now = met) met.wait(now);
      };
      beside(kCpu, {meets}, [] {});
    };
    std::thread other([&] { rank(1); });
    rank(0);
    other.join();
    CHECK(recorded[0]);
    CHECK_FALSE(recorded[1]);
  }

  TEST_CASE("nested work, and exceptions of either, rethrown after both have ended") {
    int done = 0;
    const auto count = [&](const auto&) { ++done; };
    beside(kCpu, {count}, [&] { beside(kCpu, {count}, [] {}); });
    CHECK(done == 2);
    const auto fails = [](const auto&) { throw std::runtime_error("lost"); };
    bool worked = false;
    CHECK_THROWS_WITH(beside(kCpu, {fails}, [&] { worked = true; }), "lost");
    CHECK(worked);
    CHECK_THROWS_WITH(beside(kCpu, {count}, [] { throw std::runtime_error("work"); }), "work");
    CHECK(done == 3);
    beside(kCpu, {count}, [] {});
    CHECK(done == 4);
  }
}

}  // namespace polyphony::exec
