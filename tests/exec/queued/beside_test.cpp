// Keys that are passed around a ring, or gathered some heads at a time, travel while a device
// computes attention, and nothing is used before it has arrived.
#include <doctest/doctest.h>

#include <cmath>

#include "exec/context_parallel/head_groups.h"
#include "exec/context_parallel/ring_attention.h"
#include "tests/exec/device_double/device_world.h"
#include "tests/exec/device_double/late_rank.h"
#include "tests/exec/device_double/queued_device.h"
#include "tests/exec/support/dense_mask.h"
#include "tests/shared/support/random_masks.h"

namespace polyphony::exec::testing {

namespace {

using torch::Tensor;
using Counts = std::vector<std::int64_t>;

constexpr int kWorldRanks = 3;
constexpr std::int64_t kTokens = 90, kHeads = 3, kGroup = 2, kWidth = 4;

// The rows of the sequence on each rank: unequal numbers, one in two ranges.
const std::vector<std::vector<Interval>> kRows = {{{0, 10}, {70, 90}}, {{10, 50}}, {{50, 70}}};

// Reference on a single rank, by the definition: queries [K, g, T, D], keys and values [K, 1, T,
// D].
struct Whole {
  TokenMask mask = test::RandomMask::make(test::RandomMask::Kind::packed, kTokens, 4);
  Tensor q = random({kHeads, kGroup, kTokens, kWidth}), k = random({kHeads, 1, kTokens, kWidth}),
         v = random({kHeads, 1, kTokens, kWidth}),
         dy = random({kHeads, kGroup, kTokens, kWidth}).detach(), out;

  Whole() {
    const Tensor scores =
        torch::matmul(q, k.transpose(2, 3)) / std::sqrt(double(kWidth)) + dense(mask, 0);
    out = torch::matmul(scores.softmax(3), v);
    out.backward(dy);
    out = out.detach();
  }
  static Tensor random(at::IntArrayRef shape) {
    return torch::randn(shape, torch::kFloat64).requires_grad_(true);
  }
};

// [K, 1, T, D] each -> [groups · T, 2 · K/groups · D]
Tensor as_rows(const Tensor& keys, const Tensor& values, std::int64_t groups) {
  return torch::stack({keys, values})
      .view({2, groups, kHeads / groups, -1, kWidth})
      .permute({1, 3, 0, 2, 4})
      .reshape({groups * keys.size(2), 2 * kHeads / groups * kWidth});
}

enum class Way { ring, heads };

// Returns the largest relative error of a rank's output and gradients. `late`: LateRank delays the
// last rank.
double error(Transport& transport, torch::Device device, const Whole& whole, Way way, Done* late) {
  const torch::NoGradGuard no_grad;
  const int me = static_cast<int>(transport.rank().value);
  const std::vector<Interval>& own = kRows[static_cast<std::size_t>(me)];
  const auto made = transport.make_group("context", {Rank(0), Rank(1), Rank(2)});
  connect_members(*made, device);
  Done nothing{0};
  LateRank seen(*made, device, late ? *late : nothing);
  std::vector<InnerCollective> record;
  InnerGroup group(GroupKind::context, late ? &seen : made.get(), record);
  const std::vector<Rectangle> all = rectangles(whole.mask);
  const Tensor mine = rows_of(own);
  const auto there = [&](const Tensor& x) {
    return x.detach().index_select(2, mine).contiguous().to(device);
  };
  const Tensor queries = there(whole.q), dy = there(whole.dy);
  const std::int64_t groups = way == Way::heads ? kHeads : 1;
  const auto of = [&](const Tensor& k, const Tensor& v) {
    return as_rows(k.detach().index_select(2, mine), v.detach().index_select(2, mine), groups);
  };
  const Tensor keys = of(whole.k, whole.v).to(device);
  const HeadShape heads{kHeads, kGroup, kWidth};

  Counts counts;
  std::vector<Tensor> order;
  for (const std::vector<Interval>& rows : kRows) {
    order.push_back(rows_of(rows));
    counts.push_back(order.back().numel());
  }
  ContextPlan plan;
  if (way == Way::ring) {
    std::vector<AttentionCalls> calls;
    for (const std::vector<Interval>& rows : kRows)
      calls.push_back(calls_for(all, own, rows, device));
    plan.ring = std::make_shared<KeyRing>(KeyRing{group, counts, calls});
  } else {
    plan.rows = one_sequence(mine.numel());
    plan.gather = std::make_shared<ListedRows>(group, counts);
    plan.inverse = torch::cat(order).to(device);
    plan.order = torch::cat(order).argsort().to(device);
    plan.calls = calls_for(all, own, {{0, kTokens}}, device);
    plan.heads = 1;
  }
  take_counts(device);
  Attended attended;
  RoundGradients gradients;
  if (way == Way::ring) {
    attended = attend_round(*plan.ring, queries, keys, heads);
    gradients = attend_round_backward(*plan.ring, dy, queries, keys, attended, heads);
  } else {
    attended = attend_groups(plan, queries, keys, heads);
    gradients = attend_groups_backward(plan, dy, queries, keys, attended, heads);
  }
  CHECK(take_counts(device).host_waits() == 0);
  // Overlapped blocks or heads of three: in forward the first two, in backward those two and the
  // third, which overlaps with sending the gradients of an earlier one.
  if (late) CHECK(seen.works() == 2 + 3);
  const auto here = [](const Tensor& x) { return x.cpu(); };
  const auto worst = [](double a, double b) { return std::isnan(b) ? INFINITY : std::max(a, b); };
  double most = off(here(attended.out), whole.out.index_select(2, mine));
  most = worst(most, off(here(gradients.queries), whole.q.grad().index_select(2, mine)));
  return worst(most, off(here(gradients.keys), of(whole.k.grad(), whole.v.grad())));
}

// For any rank, also if its device has failed.
double worst_error(bool in_order, Way way, Done* late) {
  torch::manual_seed(8);
  const Whole whole;
  std::atomic<double> most{0};
  on_devices(kWorldRanks, in_order, [&](Transport& transport, torch::Device device) {
    const double mine = error(transport, device, whole, way, late);
    double before = most;
    while (before < mine && !most.compare_exchange_weak(before, mine)) {
    }
  });
  return most;
}

}  // namespace

TEST_SUITE("queued device") {
  TEST_CASE("work next to ring and gathered keys runs while these wait for other ranks") {
    for (const Way way : {Way::ring, Way::heads})
      for (const bool in_order : {false, true}) {
        CAPTURE(static_cast<int>(way));
        CAPTURE(in_order);
        Done late{0};
        CHECK(worst_error(in_order, way, &late) < 1e-12);
      }
  }

  TEST_CASE("keys from other ranks are right however late kernels are, and wrong without waits") {
    for (const Way way : {Way::ring, Way::heads}) {
      CAPTURE(static_cast<int>(way));
      double most = 0, faulty = 0;
      for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        delay_kernels(100, seed);
        most = std::max(most, worst_error(seed % 2 == 0, way, nullptr));
      }
      seed_fault(SeededFault::missing_wait);
      for (std::uint64_t seed = 1; seed <= 5 && faulty < 1e-6; ++seed) {
        delay_kernels(200, seed);
        faulty = worst_error(false, way, nullptr);
      }
      seed_fault(SeededFault::none);
      delay_kernels(0, 0);
      CHECK(most < 1e-12);
      CHECK(faulty > 1e-6);
    }
  }
}

}  // namespace polyphony::exec::testing
