// A transport that limits the rate at which its rank sends. It emulates a slow link on a machine
// that has none.
//
// Each rank has a token bucket without burst: outgoing bytes wait until all earlier bytes would
// have passed a link of this rate, plus their own time on it; then the inner transport sends them.
//
// Bytes counted: those of a message; for a collective over n ranks with S bytes in the whole array,
// what exec/wire/peer_exchange.h sends: (n-1)/n·S for a reduce-scatter, twice that for an
// all-reduce (also below 16 KiB, where peer_exchange.h sends (n-1)·S), (n-1) times the own part for
// an all-gather, and the other members' parts for an all-to-all. Messages to the rank itself,
// barriers and posts cost nothing.
//
// Does not model: latency, the receiver's link, several links per rank.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "exec/transport/forwarding.h"
#include "shared/units.h"

namespace polyphony::exec {

// Computes when bytes have passed the emulated link. Several threads may use it at the same time.
class TokenBucket {
 public:
  using Clock = std::chrono::steady_clock;
  explicit TokenBucket(BytesPerSecond rate) : rate_(rate) {}
  // Reserves the link for `bytes` requested at `now`, and returns the time at which they have
  // passed.
  Clock::time_point take(std::int64_t bytes, Clock::time_point now);
  void wait(std::int64_t bytes);  // reserves the link, and sleeps until the bytes have passed

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
