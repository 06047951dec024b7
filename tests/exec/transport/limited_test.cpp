// The emulated slow link: bytes leave one after another at its rate.
#include <doctest/doctest.h>

#include <chrono>
#include <mutex>
#include <thread>

#include "exec/transport/in_process.h"
#include "exec/transport/limited.h"

namespace polyphony::exec {

// A thousand bytes per second: 500 bytes are sent after half a second, 250 requested at the same
// time a quarter later; after a pause there is nothing to wait for, and nothing is saved up.
TEST_CASE("a token bucket lets bytes through one after another, at its rate, without burst") {
  TokenBucket bucket(BytesPerSecond(1000));
  const TokenBucket::Clock::time_point begin{std::chrono::seconds(100)};
  const auto after = [&](TokenBucket::Clock::time_point at) {
    return std::chrono::duration<double>(at - begin).count();
  };
  CHECK(after(bucket.take(500, begin)) == doctest::Approx(0.5));
  CHECK(after(bucket.take(250, begin)) == doctest::Approx(0.75));
  CHECK(after(bucket.take(100, begin + std::chrono::seconds(5))) == doctest::Approx(5.1));
  CHECK(after(bucket.take(0, begin + std::chrono::seconds(5))) == doctest::Approx(5.1));
}

// 1,000 floats at 100 kB/s: 4,000 bytes take 40 ms each way. An all-reduce of two ranks sends 2 ·
// 1/2 · 4,000 bytes from each: 40 ms. No upper bound: the machine may be busy.
TEST_CASE("a limited rank's messages and sums are the same, and take at least their bytes' time") {
  auto ranks = make_in_process(2);
  std::vector<std::unique_ptr<Transport>> limited;
  for (auto& rank : ranks)
    limited.push_back(std::make_unique<LimitedTransport>(std::move(rank), BytesPerSecond(1e5)));
  std::vector<std::thread> threads;
  std::mutex mutex;
  const auto begin =
      TokenBucket::Clock::now();  // of both: one may wait for the other's thread to start
  for (auto& transport : limited)
    threads.emplace_back([&transport, &mutex, begin] {
      const bool first = transport->rank() == Rank(0);
      torch::Tensor message = first ? torch::ones({1000}) : torch::zeros({1000});
      if (first)
        transport->send(message, Rank(1), 3);
      else
        transport->receive(message, Rank(0), 3);
      const auto group = transport->make_group("both", {Rank(0), Rank(1)});
      torch::Tensor sum = torch::full({1000}, first ? 1.0f : 2.0f);
      group->all_reduce(sum, Reduction::sum);
      const std::chrono::duration<double> took = TokenBucket::Clock::now() - begin;
      const std::lock_guard<std::mutex> lock(mutex);
      CHECK(message.sum().item<float>() == 1000);
      CHECK(sum.sum().item<float>() == 3000);
      CHECK(took.count() >= 0.079);
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace polyphony::exec
