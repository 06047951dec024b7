#include "exec/chunk/chunk.h"

#include <doctest/doctest.h>

#include "exec/attention/attention.h"
#include "exec/attention/rotary.h"
#include "shared/error.h"
#include "tests/exec/support/tiny_model.h"

using namespace polyphony;
using namespace polyphony::exec;
using namespace polyphony::exec::testing;
using torch::Tensor;

namespace {

std::vector<Tensor> gradients(Chain& chain) {
  std::vector<Tensor> all;
  for (const LocalParameter* parameter : chain.parameters()) all.push_back(parameter->grad.clone());
  return all;
}

void check_equal(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(torch::equal(a[i], b[i]));
}

// Causal, with RoPE at these positions.
SequencePlan plan_turned(const std::vector<std::int64_t>& lengths, const Tensor& positions,
                         int head_dim) {
  return plan_causal(lengths, text_angles({}, positions, head_dim, 1e4, true), torch::kFloat64);
}

// Full softmax attention of one sequence, without any of exec/attention.
Tensor plain_attention(const Tensor& qkv, const HeadShape& heads, bool causal) {
  const std::int64_t n = qkv.size(0);
  const Tensor split = qkv.view({n, heads.kv_heads, heads.group + 2, heads.width});
  Tensor out = torch::empty({n, heads.kv_heads, heads.group, heads.width}, qkv.options());
  for (std::int64_t k = 0; k < heads.kv_heads; ++k) {
    for (std::int64_t g = 0; g < heads.group; ++g) {
      const Tensor q = split.select(1, k).select(1, g);
      const Tensor key = split.select(1, k).select(1, heads.group),
                   value = split.select(1, k).select(1, heads.group + 1);
      Tensor scores = q.mm(key.t()) / std::sqrt(static_cast<double>(heads.width));
      if (causal) scores = scores.masked_fill(torch::ones({n, n}, torch::kBool).triu(1), -INFINITY);
      out.select(1, k).select(1, g).copy_(scores.softmax(1).mm(value));
    }
  }
  return out.view({n, heads.kv_heads * heads.group * heads.width});
}

}  // namespace

TEST_SUITE("chunk") {
  TEST_CASE("gradients equal finite differences of the loss") {
    Chain chain(whole_model(torch::kFloat64), nullptr);
    const TestWork work = uneven_work(torch::kFloat64);
    chain.forward(0, work.input);
    chain.backward(0);
    const auto loss = [&] {
      const double value = chain.forward(1, work.input).item<double>();
      for (std::size_t i = 0; i < chain.size(); ++i) chain[i].drop(1);
      return value;
    };
    // Central difference along a random direction of each tensor: error h²/6 · third derivative,
    // and 1e-16/h of rounding.
    const double h = 1e-5;
    for (LocalParameter* parameter : chain.parameters()) {
      const Tensor direction = torch::randn_like(parameter->value);
      const double slope = (parameter->grad * direction).sum().item<double>();
      parameter->value.add_(direction, h);
      const double above = loss();
      parameter->value.sub_(direction, 2 * h);
      const double below = loss();
      parameter->value.add_(direction, h);
      CAPTURE(parameter->spec.name);
      CHECK(std::abs((above - below) / (2 * h) - slope) < 1e-6 * std::abs(slope) + 1e-9);
      CHECK(parameter->grad.abs().max().item<double>() >
            1e-9);  // perturbed, so nothing is zero by accident
    }
  }

  TEST_CASE("split, chunked, repeated and recomputed backwards are bitwise identical") {
    const auto stages = whole_model(torch::kFloat32);
    const TestWork first = uneven_work(torch::kFloat32, 1),
                   second = uneven_work(torch::kFloat32, 5);
    Chain plain(stages, nullptr);
    for (const TestWork* work : {&first, &second}) {
      plain.forward(0, work->input);
      plain.backward(0);
    }
    const std::vector<Tensor> expected = gradients(plain);

    SUBCASE("split, two microbatches in flight") {
      Chain chain(stages, nullptr);
      chain.forward(0, first.input);
      chain.forward(1, second.input);
      chain.backward_split(0);
      chain.backward_split(1);
      check_equal(gradients(chain), expected);
    }
    SUBCASE("one layer per chunk") {
      Chain chain(cut_model(torch::kFloat32), nullptr);
      for (const TestWork* work : {&first, &second}) {
        chain.forward(7, work->input);
        chain.backward(7);
      }
      check_equal(gradients(chain), expected);
    }
    SUBCASE("recompute") {
      for (const Recompute recompute : {Recompute::selective, Recompute::full}) {
        for (const LayerRange range : {kAllLayers, LayerRange{2, 3}}) {
          auto recomputing = stages;
          for (Stage& stage : recomputing) {
            stage.options.recompute = recompute;
            stage.options.recomputed = range;
          }
          for (const bool split : {false, true}) {
            Chain chain(recomputing, nullptr);
            for (const TestWork* work : {&first, &second}) {
              chain.forward(0, work->input);
              split ? chain.backward_split(0) : chain.backward(0);
            }
            check_equal(gradients(chain), expected);
          }
        }
      }
    }
  }

  TEST_CASE("a frozen module passes the gradient on and stores none") {
    const TestWork work = uneven_work(torch::kFloat64);
    auto stages = whole_model(torch::kFloat64);
    Chain plain(stages, nullptr);
    plain.forward(0, work.input);
    plain.backward(0);

    stages[2].options.trainable = false;
    Chain chain(stages, nullptr);
    chain.forward(0, work.input);
    chain.backward(0);
    for (const LocalParameter& parameter : chain[2].parameters()) CHECK(!parameter.grad.defined());
    for (const std::size_t i : {0, 1}) {
      for (std::size_t k = 0; k < chain[i].parameters().size(); ++k) {
        CHECK(torch::equal(chain[i].parameters()[k].grad, plain[i].parameters()[k].grad));
      }
    }
    // Frozen, with nothing trainable before it: nothing is saved.
    stages[0].options.trainable = false;
    Chain vision({stages[0]}, nullptr);
    vision.forward(0, work.input);
    CHECK_THROWS_AS(vision[0].backward(0, Tensor()), InternalError);
  }

  TEST_CASE("microbatches without images, text, labels or samples") {
    Chain chain(whole_model(torch::kFloat64), nullptr);
    const std::vector<TestWork> works = {
        text_only_work(torch::kFloat64), no_label_work(torch::kFloat64),
        make_work({{{16}, 0, 0}}, torch::kFloat64, 4), make_work({}, torch::kFloat64, 5)};
    for (const TestWork& work : works) {
      const double loss = chain.forward(0, work.input).item<double>();
      CHECK((loss > 0) == (work.language.loss_tokens > 0));
      chain.backward(0);
    }
    // Only the text-only microbatch has labels: the vision tower gets no gradient.
    for (const LocalParameter& parameter : chain[0].parameters())
      CHECK(parameter.grad.abs().sum().item<double>() == 0);
    CHECK(chain[2].parameters()[0].grad.abs().sum().item<double>() > 0);
    for (const LocalParameter* parameter : chain.parameters())
      CHECK(parameter->grad.isfinite().all().item<bool>());
  }

  TEST_CASE("packed attention equals attention of each sequence alone") {
    torch::manual_seed(3);
    const HeadShape heads{2, 3, 8};
    const std::vector<std::int64_t> lengths = {40, 3, 0, 17, 100, 40, 1, 64, 3};
    std::int64_t total = 0;
    for (const std::int64_t n : lengths) total += n;
    for (const bool causal : {false, true}) {
      // Position 0 everywhere: RoPE rotates nothing.
      const SequencePlan plan = causal
                                    ? plan_turned(lengths, torch::zeros({total}, torch::kInt64), 8)
                                    : plan_images(lengths, torch::kCPU);
      const Tensor qkv = torch::randn({total, 2 * 5 * 8}, torch::kFloat64).requires_grad_();
      const Tensor seed = torch::randn({total, 2 * 3 * 8}, torch::kFloat64);
      const Tensor out = attention(qkv, plan, heads);
      torch::autograd::backward({out}, {seed});
      const Tensor gradient = qkv.grad().clone();
      qkv.mutable_grad().zero_();
      std::int64_t first = 0;
      for (const std::int64_t n : lengths) {
        const Tensor alone = plain_attention(qkv.narrow(0, first, n), heads, causal);
        CHECK(torch::allclose(out.narrow(0, first, n), alone, 1e-12, 1e-13));
        torch::autograd::backward({alone}, {seed.narrow(0, first, n)});
        first += n;
      }
      CHECK(torch::allclose(gradient, qkv.grad(), 1e-12, 1e-13));
    }
  }

  TEST_CASE("rotary scores depend only on the distance") {
    // One head, one pair of rows at positions p and p + 3: with equal q and k everywhere the first
    // row's output weights depend on 3 alone, so every pair gives the same output.
    torch::manual_seed(4);
    const HeadShape heads{1, 1, 8};
    const Tensor pair = torch::randn({2, 3 * 8}, torch::kFloat64);
    const Tensor positions = torch::tensor({0, 3, 5, 8, 900, 903}, torch::kInt64);
    const SequencePlan plan = plan_turned({2, 2, 2}, positions, 8);
    const Tensor out = attention(pair.repeat({3, 1}), plan, heads);
    CHECK(torch::allclose(out.narrow(0, 0, 2), out.narrow(0, 2, 2), 1e-11, 1e-12));
    CHECK(torch::allclose(out.narrow(0, 0, 2), out.narrow(0, 4, 2), 1e-11, 1e-12));
    // By hand for width 2: theta^0 = 1, so q and k rotate by the position in radians. q = (1, 0),
    // keys (1, 0) at 0 and at p = 1: scores of the second row: cos 1 and cos 0, divided by √2.
    const SequencePlan small = plan_turned({2}, torch::tensor({0, 1}, torch::kInt64), 2);
    const Tensor rows = torch::tensor(
        {{1.0, 0.0, 1.0, 0.0, 1.0, 0.0}, {1.0, 0.0, 1.0, 0.0, 0.0, 1.0}}, torch::kFloat64);
    const Tensor second = attention(rows, small, {1, 1, 2})[1];
    const double a = std::exp(std::cos(1.0) / std::sqrt(2.0)), b = std::exp(1 / std::sqrt(2.0));
    CHECK(second[0].item<double>() == doctest::Approx(a / (a + b)).epsilon(1e-12));
    CHECK(second[1].item<double>() == doctest::Approx(b / (a + b)).epsilon(1e-12));
  }
}
