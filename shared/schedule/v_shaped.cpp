// Schedules with V placement: rank r holds stages r (down) and 2·pp − 1 − r (up). Rank 0 has both
// the first layers and the loss of a microbatch, and every rank holds one early and one late stage.
// `way` is kDown or kUp.
#include <algorithm>
#include <array>
#include <deque>

#include "shared/error.h"
#include "shared/schedule/schedule.h"

namespace polyphony::schedules {
namespace {

// Appends actions of the two stages of a rank; counts the next microbatch of each.
class Writer {
 public:
  Writer(const Pipeline& pipeline, int rank)
      : microbatches_(pipeline.microbatches), stage_{rank, pipeline.stages() - 1 - rank} {}

  void forward(int way) { add(ActionKind::forward, way, forwards_[way]++); }
  void backward(int way) { add(ActionKind::backward, way, backwards_[way]++); }
  // Appends the input part of a backward; queues its weight part.
  void input(int way) {
    waiting_.push_back({way, backwards_[way]});
    add(ActionKind::backward_input, way, backwards_[way]++);
  }
  // Appends the oldest queued weight part, of either stage or of one.
  void weight() { weight_at(waiting_.begin()); }
  void weight(int way) {
    weight_at(std::find_if(waiting_.begin(), waiting_.end(),
                           [&](const Waiting& w) { return w.way == way; }));
  }
  void pair(int forward_way) {
    forward(forward_way);
    order_.back().overlapped = true;
    backward(1 - forward_way);
  }
  int forwards(int way) const { return forwards_[way]; }
  int waiting(int way) const {
    return static_cast<int>(std::count_if(waiting_.begin(), waiting_.end(),
                                          [&](const Waiting& w) { return w.way == way; }));
  }
  // Drops actions of microbatches that do not exist: orders may be built for more than there are.
  Actions take() {
    std::erase_if(order_, [&](const Action& action) { return action.work >= microbatches_; });
    return std::move(order_);
  }

 private:
  struct Waiting {
    int way, work;
  };
  void add(ActionKind kind, int way, int work) {
    order_.push_back(make_action(kind, stage_[way], work));
  }
  void weight_at(std::deque<Waiting>::iterator it) {
    add(ActionKind::backward_weight, it->way, it->work);
    waiting_.erase(it);
  }

  int microbatches_;
  int stage_[2];
  int forwards_[2] = {0, 0}, backwards_[2] = {0, 0};
  std::deque<Waiting> waiting_;
  Actions order_;
};

constexpr int kDown = 0, kUp = 1;

}  // namespace

// Warm-up: forwards down until the first microbatch comes up, then both ways alternating, then
// backwards of the up stage, each with its weight part. Steady state: F, I, W of each way in turn.
// Drain: input parts first, weight parts where there is time.
Actions zero_bubble_v(const Pipeline& pipeline, int rank) {
  const int pp = pipeline.ranks, works = std::max(pipeline.microbatches, 2 * pp - 1);
  Writer to(pipeline, rank);
  for (int i = 0; i < 2 * (pp - rank) - 1; ++i) to.forward(kDown);
  for (int i = 0; i < rank; ++i) to.forward(kUp), to.forward(kDown);
  for (int i = 0; i < pp - rank; ++i) to.forward(kUp), to.input(kUp), to.weight(kUp);
  while (to.forwards(kUp) < works) {
    if (to.forwards(kDown) < works) to.forward(kDown);
    to.input(kDown), to.weight(kDown);
    to.forward(kUp);
    to.input(kUp), to.weight(kUp);
  }
  for (int i = 0; i < rank; ++i) to.input(kDown), to.input(kUp);
  for (int i = 0; i < pp - rank; ++i) {
    to.input(kDown);
    to.weight(kDown);
  }
  while (to.waiting(kUp) > 0) to.weight(kUp);
  while (to.waiting(kDown) > 0) to.weight(kDown);
  return to.take();
}

// Eight phases: forwards down; forwards of both ways; split backwards up, alternating with forwards
// up; pairs of both ways; backwards up and pairs; backwards of both ways, of which the second half
// defer their weight parts; weight parts alternating with input parts down; the remaining weight
// parts.
Actions dualpipe_v(const Pipeline& pipeline, int rank) {
  const int pp = pipeline.ranks, behind = pp - rank - 1;
  Writer to(pipeline, rank);
  for (int i = 0; i < 2 * behind; ++i) to.forward(kDown);
  for (int i = 0; i <= rank; ++i) to.forward(kDown), to.forward(kUp);
  for (int i = 0; i < behind; ++i) to.input(kUp), to.weight(), to.forward(kUp);
  for (int i = 0; i < pipeline.microbatches - 2 * pp + rank + 1; ++i) {
    // Not a pair on the last rank: it holds both stages at the tip of the V.
    if (i == 0 && behind == 0)
      to.forward(kDown), to.backward(kUp);
    else
      to.pair(kDown);
    to.pair(kUp);
  }
  for (int i = 0; i < behind; ++i) to.backward(kUp), to.pair(kUp);
  bool later = false;
  for (int i = 0; i <= rank; ++i) {
    const bool half = i == (rank + 1) / 2;
    later = later || (half && rank % 2 == 1);
    later ? to.input(kUp) : to.backward(kUp);
    later = later || half;
    later ? to.input(kDown) : to.backward(kDown);
  }
  for (int i = 0; i < behind; ++i) to.weight(), to.input(kDown);
  for (int i = 0; i <= rank; ++i) to.weight();
  return to.take();
}

namespace {

// When a rank runs the four F and I of a microbatch, in units of one of them: forward down, forward
// up, input part up, input part down. The next microbatch follows kPeriod later.
using Block = std::array<int, 4>;
constexpr int kPeriod = 6;  // four of these, and two weight parts

// `steps`: from a rank to the next one, on each of the four ways. `turns`: additional units where
// the way turns: at the last rank, at the loss, and at the last rank again.
Block block_of(int rank, int ranks, const Block& steps, const std::array<int, 3>& turns) {
  const int last = ranks - 1, behind = last - rank;
  const int up = steps[0] * last + 1 + turns[0], loss = up + steps[1] * last + 1 + turns[1],
            down = loss + steps[2] * last + 1 + turns[2];
  return {steps[0] * rank, up + steps[1] * behind, loss + steps[2] * rank,
          down + steps[3] * behind};
}

// Returns whether no rank runs two of its four at the same time in any period.
bool repeats(int ranks, const Block& steps, const std::array<int, 3>& turns) {
  for (int rank = 0; rank < ranks; ++rank) {
    unsigned taken = 0;
    for (const int at : block_of(rank, ranks, steps, turns)) {
      const unsigned slot = 1U << static_cast<unsigned>(at % kPeriod);
      if ((taken & slot) != 0) return false;
      taken |= slot;
    }
  }
  return true;
}

// Returns the turns of least sum that let the block repeat.
std::array<int, 3> turns_of(int ranks, const Block& steps) {
  for (int sum = 0; sum <= 3 * (kPeriod - 1); ++sum)
    for (int first = 0; first <= std::min(sum, kPeriod - 1); ++first)
      for (int second = 0; second <= std::min(sum - first, kPeriod - 1); ++second) {
        const std::array<int, 3> turns{first, second, sum - first - second};
        if (turns[2] < kPeriod && repeats(ranks, steps, turns)) return turns;
      }
  POLYPHONY_CHECK(false, "no block repeats on " << ranks << " ranks");
}

// Repeats a block for every microbatch. The period's two other units are for weight parts; where
// there are none yet, or no forwards any more, later parts move up when the order is played.
// `held`: weight parts that wait once the rank's forwards down are over, so that input parts of the
// last microbatches come first.
Actions repeated(const Pipeline& pipeline, int rank, const Block& steps, int held) {
  const Block block = block_of(rank, pipeline.ranks, steps, turns_of(pipeline.ranks, steps));
  struct Event {
    int time, part, work;
    auto operator<=>(const Event&) const = default;
  };
  std::vector<Event> events;
  for (int work = 0; work < pipeline.microbatches; ++work)
    for (int part = 0; part < 4; ++part)
      events.push_back({block[static_cast<std::size_t>(part)] + kPeriod * work, part, work});
  std::sort(events.begin(), events.end());
  const int forwards_end = block[0] + kPeriod * (pipeline.microbatches - 1);
  Writer to(pipeline, rank);
  const auto waiting = [&] { return to.waiting(kDown) + to.waiting(kUp); };
  int now = 0;
  for (const Event& event : events) {
    for (; now < event.time && waiting() > (now > forwards_end ? held : 0); ++now) to.weight();
    now = event.time + 1;
    switch (event.part) {
      case 0:
        to.forward(kDown);
        break;
      case 1:
        to.forward(kUp);
        break;
      case 2:
        to.input(kUp);
        break;
      default:
        to.input(kDown);
    }
  }
  while (waiting() > 0) to.weight();
  return to.take();
}

}  // namespace

// A microbatch's activations on a rank live for 6·pp units of both stages together, of which one
// microbatch begins every six: pp halves. Those of v-min live for 4·pp.
Actions v_half(const Pipeline& pipeline, int rank) {
  return repeated(pipeline, rank, {2, 1, 2, 1}, rank);
}

Actions v_min(const Pipeline& pipeline, int rank) {
  return repeated(pipeline, rank, {1, 1, 1, 1}, 0);
}

}  // namespace polyphony::schedules
