// Routing and gates by hand (exec/experts/routing.h, exec/autograd/glu.h).
#include "exec/experts/routing.h"

#include <cmath>

#include "exec/autograd/glu.h"
#include "tests/exec/support/sparse_layer.h"

#include <doctest/doctest.h>  // after LibTorch, which has a CHECK of its own

using namespace polyphony;
using namespace polyphony::exec;
using namespace polyphony::exec::testing;
using torch::Tensor;

namespace {

bool nearly_equal(const Tensor& a, const Tensor& b) {
  return a.sizes() == b.sizes() && (a - b).norm().item<double>() <= 1e-12 * b.norm().item<double>();
}

}  // namespace

TEST_SUITE("experts") {
  TEST_CASE("a token chooses groups by their two best scores, then experts in these groups") {
    Module module = sparse_language();
    module.router_scores = RouterScores::sigmoid;
    module.experts = 6;
    module.expert_groups = 3;
    module.groups_per_token = 1;
    // Sums of σ by group, rows: 0.98 + 0.00, 0.88 + 0.88, 0.73 + 0.95; equal ones.
    const Tensor logits = torch::tensor({{4., -9., 2., 2., 1., 3.}, {1., 1., 1., 1., 1., 1.}});
    CHECK(torch::equal(choose(logits, module), torch::tensor({{2, 3}, {0, 1}}, torch::kInt64)));
    module.groups_per_token = 2;
    CHECK(torch::equal(choose(logits, module), torch::tensor({{5, 2}, {0, 1}}, torch::kInt64)));
    // Three experts a group: a third one does not count. 0.5·3 against 0.88 + 0.5 + 0.00.
    module.expert_groups = 2;
    module.groups_per_token = 1;
    const Tensor thirds = torch::tensor({{0., 0., 0., 2., 0., -9.}});
    CHECK(torch::equal(choose(thirds, module), torch::tensor({{3, 4}}, torch::kInt64)));
    module.expert_groups = 0;
    CHECK(torch::equal(choose(logits, module), torch::tensor({{0, 5}, {0, 1}}, torch::kInt64)));
  }

  TEST_CASE("weights by hand") {
    Module module = sparse_language();
    const Tensor logits = torch::tensor({{0., std::log(3.), -std::log(3.)}}, torch::kFloat64);
    const Tensor chosen = torch::tensor({{1, 0}}, torch::kInt64);
    const auto weights = [&] {
      return routing_weights(chosen_scores(logits, chosen, module.router_scores), module);
    };
    CHECK(nearly_equal(weights(), torch::tensor({{0.75, 0.25}}, torch::kFloat64)));  // 3 : 1
    module.router_scores = RouterScores::sigmoid;                                    // 3/4 : 1/2
    CHECK(nearly_equal(weights(), torch::tensor({{0.6, 0.4}}, torch::kFloat64)));
    module.routed_scale = 2.5;
    CHECK(nearly_equal(weights(), torch::tensor({{1.5, 1.0}}, torch::kFloat64)));
  }

  TEST_CASE("gates, clamped and not") {
    torch::manual_seed(5);
    Module module = sparse_language();
    // Some are beyond the limits of ±7: with a deviation of 6, a quarter.
    const Tensor x = torch::randn({40, 6}, torch::kFloat64).mul_(6),
                 dy = torch::randn({40, 3}, torch::kFloat64);
    CHECK(x.abs().gt(7).sum().item<int>() > 20);
    for (const Activation kind : {Activation::silu, Activation::gelu, Activation::clamped}) {
      module.activation = kind;
      const Tensor ours = x.clone().requires_grad_(true), plain = x.clone().requires_grad_(true);
      const Tensor y = glu(ours, kind);
      const Tensor wanted = reference_gate(module, plain.slice(1, 0, c10::nullopt, 2),
                                           plain.slice(1, 1, c10::nullopt, 2));
      torch::autograd::backward({y, wanted}, {dy, dy});
      CHECK(nearly_equal(y, wanted));
      CHECK(nearly_equal(ours.grad(), plain.grad()));
    }
    // By hand: g = 9 counts as 7, u = −8 as −7: −6·7·σ(11.914).
    const Tensor beyond = glu(torch::tensor({{9., -8.}}, torch::kFloat64), Activation::clamped);
    CHECK(beyond.item<double>() == doctest::Approx(-42 / (1 + std::exp(-11.914))));
  }
}
