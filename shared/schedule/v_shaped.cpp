// Schedules with V placement: rank r holds stages r (down) and 2·pp − 1 − r (up). Rank 0 has both
// the first layers and the loss of a microbatch, and every rank holds one early and one late stage.
// `way` is kDown or kUp.
#include <algorithm>
#include <deque>

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

}  // namespace polyphony::schedules
