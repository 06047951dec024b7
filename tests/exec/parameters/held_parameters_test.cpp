
#include <cmath>
#include <memory>
#include <mutex>

#include "exec/transport/in_process.h"
#include "shared/chunk/held_sizes.h"
#include "tests/exec/parameters/held_parameters.h"
#include "tests/exec/support/update_terms.h"

#include <doctest/doctest.h>  // after LibTorch, which has a CHECK of its own

using namespace polyphony;
using namespace polyphony::exec;
using namespace polyphony::exec::testing;
using torch::Tensor;

namespace {

constexpr double kRate = 0.01, kClip = 0.5;
constexpr int kWorks = 2;  // backwards a step

struct Grid {
  Shard shard = Shard::none;
  int tp = 1, shards = 1, replicas = 1;
  bool sequence_parallel = false;
  int ranks() const { return tp * shards * replicas; }
};

Tensor drawn_of_all(const Parameter& spec, const ShardIndex& place, int step, int lanes) {
  Tensor sum = torch::zeros(spec.local_shape(place), torch::kFloat64);
  for (int work = 0; work < kWorks; ++work)
    for (int lane = 0; lane < lanes; ++lane) sum += drawn(spec, place, step, work, lane);
  return sum;
}
// Share `index` of `count` unequal ones that add up to 1.
double share(int index, int count) { return 2.0 * (index + 1) / (count * (count + 1)); }

// What a backward on this rank adds: its share where other ranks of the tensor group have the rest.
void backward(std::vector<LocalParameter>& list, const ShardIndex& place, const Grid& grid,
              int step, int work, int lane) {
  for (LocalParameter& parameter : list) {
    const Parameter& spec = parameter.spec;
    Tensor part = drawn(spec, place, step, work, lane);
    if (spec.shares_heads(place)) {
      const int sharers = place.tensor / spec.key_value_heads;
      const std::int64_t rows = 2 * std::int64_t{spec.head_dim};
      part.narrow(0, part.size(0) - rows, rows).mul_(share(place.tensor_index % sharers, sharers));
    } else if (spec.sums_over_tensor(place, grid.sequence_parallel)) {
      part.mul_(share(place.tensor_index, place.tensor));
    }
    parameter.grad.add_(part);
  }
}

// AdamW as in Loshchilov and Hutter, arXiv 1711.05101, algorithm 2, element by element.
struct Plain {
  Tensor value, first, second;
  void step(const Parameter& spec, const Tensor& gradient, int count) {
    const Tensor g = gradient * kClip;
    first = first * kAdamW.beta1 + g * (1 - kAdamW.beta1);
    second = second * kAdamW.beta2 + g * g * (1 - kAdamW.beta2);
    if (spec.decay) value = value * (1 - kRate * kAdamW.weight_decay);
    value = value - kRate * (first / (1 - std::pow(kAdamW.beta1, count))) /
                        ((second / (1 - std::pow(kAdamW.beta2, count))).sqrt() + kAdamW.epsilon);
  }
};

struct Groups {
  std::unique_ptr<Communicator> tensor, shards, replicas;
};
Groups make_groups(Transport& transport, const Grid& grid, int t, int s, int r) {
  const auto group = [&](const std::string& name, int count, int first, int stride) {
    std::vector<Rank> members;
    for (int i = 0; i < count; ++i)
      members.push_back(Rank(static_cast<std::size_t>(first + i * stride)));
    return transport.make_group(name + std::to_string(first), members);
  };
  const int lane = grid.tp * (s + grid.shards * r);
  return {group("tensor", grid.tp, lane, 1),
          group("shards", grid.shards, t + grid.tp * grid.shards * r, grid.tp),
          group("replicas", grid.replicas, t + grid.tp * s, grid.tp * grid.shards)};
}

// Three steps on one rank of the grid; what every one should give is computed beside it.
class RankUnderTest {
 public:
  RankUnderTest(Transport& transport, const Grid& grid)
      : grid_(grid), rank_(static_cast<int>(transport.rank().value)) {
    s_ = rank_ / grid.tp % grid.shards;
    place_ = {.tensor = grid.tp, .tensor_index = rank_ % grid.tp};
    groups_ = make_groups(transport, grid, place_.tensor_index, s_, replica());
    list_ = locals(module_under_test(), place_, torch::kFloat64);
    for (const LocalParameter& p : list_)
      plain_.push_back({p.value.clone(), torch::zeros_like(p.value), torch::zeros_like(p.value)});
    held_ = std::make_unique<HeldParameters>(
        pointers(list_), HeldOptions{.place = place_,
                                     .sequence_parallel = grid.sequence_parallel,
                                     .shard = grid.shard,
                                     .shards = grid.shards,
                                     .shard_index = s_});
  }
  int replica() const { return rank_ / (grid_.tp * grid_.shards); }
  int lane() const { return rank_ / grid_.tp; }
  bool divided() const { return grid_.shards > 1 && grid_.shard >= Shard::gradients; }

  // Returns this rank's part of the squared norm.
  double step(int step) {
    const bool full = grid_.shards > 1 && grid_.shard == Shard::full;
    for (int work = 0; work < kWorks; ++work) {
      CHECK((list_.front().value.numel() == 0) == full);
      held_->gather(*groups_.shards);
      CHECK(list_.front().value.numel() > 0);
      CHECK((list_.front().grad.numel() == 0) == divided());
      held_->open_gradient();
      backward(list_, place_, grid_, step, work, lane());
      if (divided()) {
        held_->reduce_partial(*groups_.tensor);
        held_->reduce_scatter(*groups_.shards);
      }
      held_->release();
    }
    if (!divided()) {
      held_->reduce_partial(*groups_.tensor);
      if (grid_.shards > 1) held_->reduce_scatter(*groups_.shards);
    }
    held_->all_reduce(*groups_.replicas);
    const double squares = replica() == 0 ? held_->squared_norm().item<double>() : 0;
    held_->step(kAdamW, kRate, update_terms(kClip, step + 1));
    held_->gather(*groups_.shards);
    for (std::size_t i = 0; i < list_.size(); ++i) {
      const Parameter& spec = list_[i].spec;
      CAPTURE(spec.name);
      plain_[i].step(spec, drawn_of_all(spec, place_, step, grid_.shards * grid_.replicas),
                     step + 1);
      CHECK((list_[i].value - plain_[i].value).abs().max().item<double>() < 1e-13);
    }
    held_->release();
    return squares;
  }

 private:
  Grid grid_;
  int rank_, s_ = 0;
  ShardIndex place_;
  Groups groups_;
  std::vector<LocalParameter> list_;
  std::vector<Plain> plain_;
  std::unique_ptr<HeldParameters> held_;
};

void check_grid(const Grid& grid) {
  CAPTURE(name(grid.shard));
  CAPTURE(grid.tp);
  CAPTURE(grid.shards);
  CAPTURE(grid.replicas);
  std::vector<double> squares(3);
  std::mutex mutex;
  run_in_process(grid.ranks(), [&](Transport& transport) {
    torch::set_num_threads(1);
    RankUnderTest rank(transport, grid);
    for (int step = 0; step < 3; ++step) {
      const double mine = rank.step(step);
      const std::lock_guard lock(mutex);
      squares[static_cast<std::size_t>(step)] += mine;
    }
  });
  for (int step = 0; step < 3; ++step) {
    double expected = 0;
    for (const Parameter& spec : parameters(module_under_test()))
      expected +=
          drawn_of_all(spec, {}, step, grid.shards * grid.replicas).square().sum().item<double>();
    CHECK(squares[static_cast<std::size_t>(step)] == doctest::Approx(expected).epsilon(1e-12));
  }
}

}  // namespace

TEST_SUITE("held parameters") {
  TEST_CASE("every sharding steps like plain AdamW on whole tensors, and counts the norm once") {
    for (const Shard shard : {Shard::none, Shard::optimizer, Shard::gradients, Shard::full}) {
      check_grid({.shard = shard, .tp = 1, .shards = shard == Shard::none ? 1 : 3, .replicas = 1});
      check_grid({.shard = shard, .tp = 2, .shards = shard == Shard::none ? 1 : 2, .replicas = 2});
    }
  }

  TEST_CASE("partial gradients: rows of sequence parallelism, shared key and value heads") {
    for (const bool sequence_parallel : {false, true}) {
      check_grid({.tp = 4, .replicas = 2, .sequence_parallel = sequence_parallel});
      check_grid(
          {.shard = Shard::full, .tp = 4, .shards = 2, .sequence_parallel = sequence_parallel});
    }
    // Two blocks: two norms of 16 each, and the head's; k and v of two heads of width 6 over 16
    // columns.
    const auto list = parameters(module_under_test());
    CHECK(partial_gradient_elements(list, {.tensor = 4}, true) == 5 * 16 + 2 * 2 * 2 * 6 * 16);
    CHECK(partial_gradient_elements(list, {.tensor = 4}, false) == 2 * 2 * 2 * 6 * 16);
    CHECK(partial_gradient_elements(list, {.tensor = 2}, true) == 5 * 16);
    CHECK(partial_gradient_elements(list, {}, true) == 0);
  }
}
