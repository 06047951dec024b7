// Attention over the rectangles of a mask, with all keys at once and with parts of them joined,
// compared with a softmax over a dense mask.
#include "exec/attention_calls/heads_attention.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <numeric>

#include "shared/step/tokens.h"
#include "tests/exec/support/dense_mask.h"
#include "tests/shared/support/random_masks.h"

#include <doctest/doctest.h>  // after LibTorch, which has a CHECK of its own

using namespace polyphony;
using namespace polyphony::exec;
using polyphony::exec::testing::dense;
using polyphony::exec::testing::off;
using polyphony::exec::testing::rows_of;
using torch::Tensor;
using Kind = polyphony::test::RandomMask::Kind;

namespace {

constexpr std::int64_t kTokens = 520, kHeads = 2, kGroup = 3, kWidth = 4;

}  // namespace

TEST_SUITE("attention calls") {
  TEST_CASE("attention over parts of the keys, joined: forward and backward") {
    torch::manual_seed(5);
    // This rank's queries, and the ranks whose keys arrive one part after another.
    const std::vector<Interval> own = {{10, 60}, {130, 131}, {400, kTokens}};
    const std::vector<std::vector<std::vector<Interval>>> gathered = {
        {{{0, kTokens}}}, {own, {{0, 10}, {60, 130}}, {{131, 400}}}};
    for (const Kind kind :
         {Kind::causal_blocks, Kind::prefix, Kind::prefix_documents, Kind::embedded, Kind::packed})
      for (const std::int64_t window : {0, 7})
        for (const auto& parts : gathered) {
          const TokenMask mask = test::RandomMask::make(kind, kTokens, 11);
          CAPTURE(static_cast<int>(kind));
          CAPTURE(window);
          CAPTURE(parts.size());
          const auto wide = torch::TensorOptions(torch::kFloat64);
          const Tensor rows = rows_of(own);
          const Tensor q =
              torch::randn({kHeads, kGroup, rows.numel(), kWidth}, wide).requires_grad_(true);
          const Tensor k = torch::randn({kHeads, 1, kTokens, kWidth}, wide).requires_grad_(true);
          const Tensor v = torch::randn({kHeads, 1, kTokens, 3}, wide).requires_grad_(true);
          const Tensor dy = torch::randn({kHeads, kGroup, rows.numel(), 3}, wide);
          const Tensor scores = torch::matmul(q, k.transpose(2, 3)) / std::sqrt(double(kWidth)) +
                                dense(mask, window).index_select(0, rows);
          const Tensor wanted = torch::matmul(scores.softmax(3), v);
          wanted.backward(dy);

          const torch::NoGradGuard no_grad;
          const std::vector<Rectangle> all = rectangles(mask, window);
          Attended made;
          const auto heads = [&](const std::vector<Interval>& part) {
            const Tensor keys = rows_of(part);
            return HeadTensors{q.detach(), k.index_select(2, keys), v.index_select(2, keys)};
          };
          for (const std::vector<Interval>& part : parts) {
            const Attended more = attend(heads(part), plan_calls(all, own, part));
            if (made.out.defined())
              join(made, more);
            else
              made = {more.out.clone(), more.sums.clone()};
          }
          CHECK(off(made.out, wanted) < 1e-13);
          CHECK(off(made.sums, scores.logsumexp(3)) < 1e-13);
          Tensor dq = torch::zeros_like(q), dk = torch::zeros_like(k), dv = torch::zeros_like(v);
          for (const std::vector<Interval>& part : parts) {
            const HeadTensors d =
                attend_backward(dy, heads(part), made, plan_calls(all, own, part));
            dq += d.queries;
            dk.index_add_(2, rows_of(part), d.keys);
            dv.index_add_(2, rows_of(part), d.values);
          }
          CHECK(off(dq, q.grad()) < 1e-12);
          CHECK(off(dk, k.grad()) < 1e-12);
          CHECK(off(dv, v.grad()) < 1e-12);
        }
  }

  TEST_CASE("packed sequences take one call without a window, and stock calls without a mask") {
    CHECK(plan_calls(9, false, 0, 0).size() == 1);
    const std::vector<AttentionCall> causal = plan_calls(9, true, 0, 0);
    REQUIRE(causal.size() == 1);
    CHECK(causal[0].filling == Filling::causal);
    // Windows of four: rows 0 to 3 are causal; the next four and the last attend to parts of seven
    // keys.
    const std::vector<AttentionCall> windows = plan_calls(9, true, 4, 0);
    REQUIRE(windows.size() == 3);
    CHECK(windows[0].filling == Filling::causal);
    CHECK(windows[1].filling == Filling::bitmap);
    CHECK(windows[1].keys == Interval{1, 8});
    CHECK(windows[2].keys == Interval{5, 9});
    // Four keys at a time: causal for rows 0 to 3, full for the rows after them, and so on.
    const std::vector<AttentionCall> split = plan_calls(9, true, 0, 4);
    for (const AttentionCall& call : split) CHECK(call.keys.size() <= 4);
    CHECK(split.size() == 5);
  }

  // Not a test: printed by scripts/bench_deals. Runs the attention of one rank after another, alone
  // on a core: the slowest of four over their mean, in pairs and in seconds (forward and backward,
  // medians of five rounds).
  TEST_CASE("deal times" * doctest::skip()) {
    constexpr std::int64_t kLong = 8192;
    constexpr int kRanks = 4;
    const torch::NoGradGuard no_grad;
    const int threads = at::get_num_threads();
    at::set_num_threads(1);
    const auto seconds_of = [](const HeadTensors& heads, const std::vector<AttentionCall>& calls) {
      const auto begin = std::chrono::steady_clock::now();
      const Attended made = attend(heads, calls);
      attend_backward(heads.queries, heads, made, calls);
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    };
    const auto spread = [](const std::vector<double>& of) {
      return *std::max_element(of.begin(), of.end()) * kRanks /
             std::accumulate(of.begin(), of.end(), 0.0);
    };
    const char* const names[] = {"causal blocks", "prefix", "prefix documents", "embedded",
                                 "packed"};
    std::printf("%-18s %-9s %9s %9s\n", "mask", "deal", "pairs", "seconds");
    for (const Kind kind :
         {Kind::causal_blocks, Kind::prefix, Kind::prefix_documents, Kind::embedded, Kind::packed})
      for (unsigned seed = 0; seed < 2; ++seed) {
        const TokenMask mask = test::RandomMask::make(kind, kLong, seed);
        const std::vector<Rectangle> all = rectangles(mask);
        const Tensor keys = torch::randn({4, 1, kLong, 64});
        for (const TokenAssignment deal : {TokenAssignment::zigzag, TokenAssignment::balanced}) {
          const auto owned = divide_tokens(deal, mask, 0, kRanks, {1, 0, 256});
          std::vector<double> work(kRanks);
          std::vector<std::vector<double>> times(kRanks);
          for (int round = 0; round < 5; ++round)
            for (std::size_t rank = 0; rank < kRanks; ++rank) {
              work[rank] = 0;
              for (const Interval& part : owned[rank])
                work[rank] += static_cast<double>(pairs(all, part));
              const Tensor rows = rows_of(owned[rank]);
              times[rank].push_back(
                  seconds_of({keys.expand({4, 2, kLong, 64}).index_select(2, rows), keys, keys},
                             plan_calls(all, owned[rank], {{0, kLong}})));
            }
          std::vector<double> medians;
          for (std::vector<double>& of : times) {
            std::nth_element(of.begin(), of.begin() + 2, of.end());
            medians.push_back(of[2]);
          }
          std::printf("%-16s %u %-9s %9.2f %9.2f\n", names[static_cast<int>(kind)], seed,
                      name(deal), spread(work), spread(medians));
        }
      }
    at::set_num_threads(threads);
  }
}
