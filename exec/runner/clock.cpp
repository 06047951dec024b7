#include "exec/runner/clock.h"

#include <cmath>

#include "exec/system/process.h"

namespace polyphony::exec {

Seconds clock_offset(Transport& transport) {
  constexpr int kRounds = 8;
  constexpr std::uint64_t kTag = kTagEnd - 16;  // beyond every message id
  const Rank rank = transport.rank();
  torch::Tensor question = torch::zeros({1}, torch::kFloat64),
                answer = torch::zeros({1}, torch::kFloat64);
  if (rank.value == 0) {
    for (int r = 1; r < transport.world_size(); ++r) {
      for (int i = 0; i < kRounds; ++i) {
        transport.receive(question, Rank(static_cast<std::size_t>(r)), kTag);
        answer.fill_(steady_now().count());
        transport.send(answer, Rank(static_cast<std::size_t>(r)), kTag + 1);
      }
    }
    return Seconds(0);
  }
  Seconds best_trip(1e9), offset(0);
  for (int i = 0; i < kRounds; ++i) {
    const Seconds sent = steady_now();
    transport.send(question, Rank(0), kTag);
    transport.receive(answer, Rank(0), kTag + 1);
    const Seconds trip = steady_now() - sent;
    if (trip >= best_trip) continue;
    best_trip = trip;
    offset = Seconds(answer.item<double>()) - (sent + trip / 2);
  }
  return std::abs(offset.count()) <= best_trip.count() / 2 ? Seconds(0) : offset;
}

}  // namespace polyphony::exec
