// A transport whose rank sends no faster than a rate: what a slow link does, on a machine that has none.
//   A token bucket of one rank, without burst: bytes that leave the rank wait until those before them would have
//   gone through a link of the rate, and take as long themselves; then they go as the transport beneath sends
//   them. Sent are a message's bytes; of a group of n and S bytes of the whole what exec/wire/peer_exchange.h sends:
//   (n-1)/n·S of a reduce-scatter, twice that of an all-reduce, own part · (n-1) of an all-gather, others' parts of
//   an all-to-all. Messages to oneself, barriers and posts are free.
// Does not model: latency, a receiver's link, several links of one rank.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "exec/transport/forwarding.h"
#include "shared/units.h"

namespace polyphony::exec {

// When bytes may have gone. Threads may ask at the same time.
class TokenBucket {
 public:
  using Clock = std::chrono::steady_clock;
  explicit TokenBucket(BytesPerSecond rate) : rate_(rate) {}
  // The time at which `bytes` asked for at `now` are through.
  Clock::time_point take(std::int64_t bytes, Clock::time_point now);
  void wait(std::int64_t bytes);  // until then

 private:
  BytesPerSecond rate_;
  std::mutex mutex_;
  Clock::time_point free_{};  // protected by mutex_
};

class LimitedTransport : public ForwardingTransport {
 public:
  LimitedTransport(std::unique_ptr<Transport> inner, BytesPerSecond rate)
      : ForwardingTransport(std::move(inner)), bucket_(std::make_shared<TokenBucket>(rate)) {}
  std::unique_ptr<Communicator> make_group(const std::string& name,
                                           const std::vector<Rank>& members) override;
  void exchange(const std::vector<Transfer>& transfers) override;

 private:
  std::shared_ptr<TokenBucket> bucket_;
};

}  // namespace polyphony::exec
