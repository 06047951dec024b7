#include "exec/runner/clock.h"

#include <cmath>

#include "exec/system/process.h"

namespace polyphony::exec {

traces::ClockSample compare_clock(Transport& transport) {
  constexpr int kRounds = 8;
  constexpr std::uint64_t kTag = kTagEnd - 16;  // above every message id
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
    return {steady_now(), Seconds(0), Seconds(0)};
  }
  traces::ClockSample best{Seconds(0), Seconds(0), Seconds(1e9)};
  for (int i = 0; i < kRounds; ++i) {
    const Seconds sent = steady_now();
    transport.send(question, Rank(0), kTag);
    transport.receive(answer, Rank(0), kTag + 1);
    const Seconds half = (steady_now() - sent) / 2, middle = sent + half;
    if (half < best.error) best = {middle, Seconds(answer.item<double>()) - middle, half};
  }
  if (std::abs(best.offset.count()) <= best.error.count()) best.offset = Seconds(0);
  return best;
}

}  // namespace polyphony::exec
