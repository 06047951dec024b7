#include "exec/experts/experts.h"

#include "exec/experts/routing.h"
#include "exec/transport/in_process.h"
#include "tests/exec/support/shards.h"
#include "tests/exec/support/sparse_layer.h"

#include <doctest/doctest.h>  // after LibTorch, which has a CHECK of its own

using namespace polyphony;
using namespace polyphony::exec;
using namespace polyphony::exec::testing;
using torch::Tensor;

namespace {

constexpr double kBar = 1e-12;  // fp64; sums of a few dozen terms of order 1

bool near(const Tensor& a, const Tensor& b) {
  return a.sizes() == b.sizes() &&
         (a - b).norm().item<double>() <= kBar * std::max(1e-6, b.norm().item<double>());
}

// Results of one rank.
struct ExpertsOutcome {
  Tensor y, dx;
  std::vector<Tensor> gradients;  // in parameter order
};
using Change =
    std::function<void(SparseLayer&)>;  // applied to the parameters before the forward pass

ExpertsOutcome run_layer_once(SparseLayer& layer, const SparseWork& work, Choices choices = {},
                              torch::Dtype dtype = torch::kFloat64) {
  const Tensor x = work.x.to(dtype, /*non_blocking=*/false, /*copy=*/true).requires_grad_(true);
  const Tensor y = layer.forward(x, work.input, choices);
  torch::autograd::backward({y}, {work.seed.to(dtype)});
  ExpertsOutcome out{y.detach(), x.grad(), {}};
  for (const LocalParameter& parameter : layer.parameters())
    out.gradients.push_back(parameter.grad);
  return out;
}

// Rank t + tp·l: index t in its tensor-parallel group, lane l in its expert group, with microbatch
// works[l].
std::vector<ExpertsOutcome> run_lanes(const Module& module, int tp,
                                      const std::vector<SparseWork>& works,
                                      const Change& change = {}) {
  const int ep = static_cast<int>(works.size());
  std::vector<ExpertsOutcome> outcomes(static_cast<std::size_t>(tp * ep));
  run_in_process(tp * ep, [&](Transport& transport) {
    torch::set_num_threads(1);
    const int rank = static_cast<int>(transport.rank().value), t = rank % tp, lane = rank / tp;
    std::vector<Rank> tensor, expert;
    for (int i = 0; i < tp; ++i) tensor.emplace_back(static_cast<std::size_t>(tp * lane + i));
    for (int i = 0; i < ep; ++i) expert.emplace_back(static_cast<std::size_t>(t + tp * i));
    const auto tensor_group = transport.make_group("tensor" + std::to_string(lane), tensor);
    const auto expert_group = transport.make_group("expert" + std::to_string(t), expert);
    SparseLayer layer(module, {.tensor = tensor_group.get(), .expert = expert_group.get()},
                      {.tensor = tp, .tensor_index = t, .expert = ep, .expert_index = lane});
    if (change) change(layer);
    outcomes[transport.rank().value] = run_layer_once(layer, works[static_cast<std::size_t>(lane)]);
  });
  return outcomes;
}

// Returns the gradient of one parameter over all lanes, as rank (t, lane) holds it.
Tensor summed(const std::vector<ExpertsOutcome>& ranks, std::size_t parameter,
              const Parameter& spec, int tp, int t, int lane) {
  const int lanes = static_cast<int>(ranks.size()) / tp;
  Tensor sum;
  for (int l = 0; l < lanes; ++l) {
    if (spec.expert && l != lane) continue;  // its ranks have it from all lanes
    const Tensor& one = ranks[static_cast<std::size_t>(t + tp * l)].gradients[parameter];
    sum = sum.defined() ? sum + one : one;
  }
  return sum;
}

void check_lanes(const Module& module, int tp, const std::vector<SparseWork>& works,
                 const Tensors& values, const Change& change = {}) {
  const int ep = static_cast<int>(works.size());
  const SparseExpected expected = expected_of(module, values, works);
  const std::vector<ExpertsOutcome> ranks = run_lanes(module, tp, works, change);
  const std::vector<Parameter> specs = polyphony::parameters(module, {1, 2});
  for (int lane = 0; lane < ep; ++lane) {
    for (int t = 0; t < tp; ++t) {
      const ExpertsOutcome& rank = ranks[static_cast<std::size_t>(t + tp * lane)];
      CAPTURE(tp);
      CAPTURE(ep);
      CHECK(near(rank.y, expected.y[static_cast<std::size_t>(lane)]));
      CHECK(near(rank.dx, expected.dx[static_cast<std::size_t>(lane)]));
      for (std::size_t p = 0; p < specs.size(); ++p) {
        const auto wanted = expected.gradients.at(specs[p].name);
        if (specs[p].name.find("norm") != std::string::npos ||
            specs[p].name.find("qkv") != std::string::npos ||
            specs[p].name.find("out.weight") != std::string::npos)
          continue;  // the block's attention
        CAPTURE(specs[p].name);
        const ShardIndex shard{.tensor = tp, .tensor_index = t, .expert = ep, .expert_index = lane};
        CHECK(near(summed(ranks, p, specs[p], tp, t, lane), local_of(wanted, specs[p], shard)));
      }
    }
  }
}

}  // namespace

TEST_SUITE("experts") {
  TEST_CASE("one rank: every expert on every token, used where chosen") {
    for (const int per_token : {1, 2, 8}) {
      for (const int shared : {0, 20}) {
        Module module = sparse_language();
        module.experts_per_token = per_token;
        module.shared_ffn = shared;
        const std::vector<SparseWork> works = {sparse_work({5, 0, 1, 17}, module.hidden, 3)};
        check_lanes(module, 1, works, whole_values(module));
        const SparseExpected expected = expected_of(module, whole_values(module), works);
        // With one expert per token its weight is always 1: only the balance loss changes the
        // router.
        for (const char* name : {"router.weight", "experts.gate_up.weight", "experts.down.weight"})
          CHECK(expected.gradients.at(kSparseBlock + name).abs().max().item<double>() > 1e-4);
      }
    }
  }

  TEST_CASE("experts and their features over ranks, with uneven loads and ranks without tokens") {
    Module module = sparse_language();
    module.shared_ffn = 8;
    const std::vector<std::vector<std::int64_t>> lengths = {{9, 2}, {}, {1, 0, 30}, {4}};
    for (const int ep : {1, 2, 4}) {
      std::vector<SparseWork> works;
      for (int lane = 0; lane < ep; ++lane)
        works.push_back(
            sparse_work(lengths[static_cast<std::size_t>(lane)], module.hidden, 11 + lane));
      for (const int tp : {1, 2}) check_lanes(module, tp, works, whole_values(module));
    }
  }

  TEST_CASE("other routing, biases and gates, over ranks") {
    const std::vector<SparseWork> works = {sparse_work({9, 2}, 16, 11),
                                           sparse_work({1, 0, 30}, 16, 12)};
    for (const Module& module : variants_of_experts()) {
      for (const int tp : {1, 2, 4}) {
        check_lanes(module, tp, {works[0]}, whole_values(module));
        check_lanes(module, tp, works, whole_values(module));
      }
    }
  }

  TEST_CASE("no tokens at all") {
    for (const Module& module : variants_of_experts()) {
      const std::vector<SparseWork> works(2, sparse_work({}, module.hidden, 1));
      check_lanes(module, 2, works, whole_values(module));
    }
  }

  TEST_CASE("ties go to the lowest experts; most experts then have no tokens") {
    const Module module = sparse_language();
    Tensors values = whole_values(module);
    values.at(kSparseBlock + "router.weight").zero_();
    const auto no_router = [](SparseLayer& layer) { layer.at("router.weight").value.zero_(); };
    const std::vector<SparseWork> works = {sparse_work({6}, module.hidden, 5),
                                           sparse_work({3, 2}, module.hidden, 6)};
    for (const int tp : {1, 2}) check_lanes(module, tp, works, values, no_router);
    const Tensor wanted =
        expected_of(module, values, works).gradients.at(kSparseBlock + "experts.down.weight");
    CHECK(wanted.narrow(0, 0, 2).abs().max().item<double>() > 0);
    CHECK(wanted.narrow(0, 2, 6).abs().max().item<double>() == 0);
    // By hand: of (1, 3, 3, 2, 3) the two largest are experts 1 and 2, three are 1, 2, 4.
    const Tensor logits = torch::tensor({{1.0, 3.0, 3.0, 2.0, 3.0}});
    CHECK(torch::equal(choose(logits, 2), torch::tensor({{1, 2}}, torch::kInt64)));
    CHECK(torch::equal(choose(logits, 3), torch::tensor({{1, 2, 4}}, torch::kInt64)));
    CHECK(torch::equal(choose(logits, 5), torch::tensor({{1, 2, 4, 3, 0}}, torch::kInt64)));
  }

  TEST_CASE(
      "the balance loss is per sample, however its tokens are distributed over context-parallel "
      "ranks") {
    const Module module = sparse_language();
    const SparseWork whole = sparse_work({7, 12}, module.hidden, 21);
    const SparseExpected expected = expected_of(module, whole_values(module), {whole});
    // Rows 0-2 and 10-18 on the first rank, 3-9 on the second.
    const std::vector<std::vector<std::int64_t>> rows = {
        {0, 1, 2, 10, 11, 12, 13, 14, 15, 16, 17, 18}, {3, 4, 5, 6, 7, 8, 9}};
    const Tensor samples =
        torch::tensor({0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1}, torch::kInt64);
    std::vector<ExpertsOutcome> ranks(2);
    std::vector<std::vector<InnerCollective>> issued(2);
    run_in_process(2, [&](Transport& transport) {
      const std::size_t c = transport.rank().value;
      const auto group = transport.make_group("context", {Rank(0), Rank(1)});
      SparseWork mine = whole;
      const Tensor index = torch::tensor(rows[c], torch::kInt64);
      mine.x = whole.x.index_select(0, index);
      mine.seed = whole.seed.index_select(0, index);
      mine.input.positions = torch::zeros({index.numel()}, torch::kInt64);
      mine.input.lengths =
          c == 0 ? std::vector<std::int64_t>{3, 9} : std::vector<std::int64_t>{4, 3};
      mine.input.context_rows = {12, 7};
      mine.input.context_samples = samples;
      SparseLayer layer(module, {.context = group.get()}, {});
      ranks[c] = run_layer_once(layer, mine);
      issued[c] = layer.groups().take_issued();
    });
    const std::vector<Parameter> specs = polyphony::parameters(module, {1, 2});
    for (std::size_t c = 0; c < 2; ++c) {
      const Tensor index = torch::tensor(rows[c], torch::kInt64);
      CHECK(near(ranks[c].dx, expected.dx[0].index_select(0, index)));
      // 2 samples × 8 experts of 8 bytes.
      CHECK((issued[c] == std::vector<InnerCollective>{
                              {CollectiveKind::all_reduce, Bytes(128), GroupKind::context}}));
    }
    for (std::size_t p = 0; p < specs.size(); ++p)
      if (specs[p].name == kSparseBlock + "router.weight")
        CHECK(near(ranks[0].gradients[p] + ranks[1].gradients[p],
                   expected.gradients.at(specs[p].name)));
  }

  TEST_CASE("a second run reuses the choice of the first") {
    const Module module = sparse_language();
    SparseLayer layer(module, {}, {});
    const SparseWork work = sparse_work({6}, module.hidden, 8);
    Choices choices;
    layer.at("router.weight").value.zero_();
    layer.forward(work.x, work.input, choices);
    layer.at("router.weight").value.normal_();
    const Tensor y = layer.forward(work.x.clone().requires_grad_(true), work.input, choices);
    torch::autograd::backward({y}, {work.seed});
    const Tensor& gradient = layer.at("experts.down.weight").grad;
    CHECK(gradient.narrow(0, 0, 2).abs().max().item<double>() > 0);
    CHECK(gradient.narrow(0, 2, 6).abs().max().item<double>() == 0);
  }

  TEST_CASE("frozen experts pass the gradient on and save nothing") {
    const Module module = sparse_language();
    const SparseWork work = sparse_work({6, 2}, module.hidden, 8);
    SparseLayer trained(module, {}, {}), frozen(module, {}, {}, /*trainable=*/false);
    const Tensor dx = run_layer_once(trained, work).dx;
    CHECK(torch::equal(run_layer_once(frozen, work).dx, dx));
    for (const LocalParameter& parameter : frozen.parameters()) CHECK(!parameter.grad.defined());
  }

  // As tests/exec/chunk/bf16_test.cpp argues: bf16 rounds where fp32 does, 2¹⁶ times as coarsely;
  // both are one draw of random signs. From equal weights and the same choice of experts.
  TEST_CASE("bf16 rounds where fp32 does") {
    for (const Module& module : variants_of_experts()) {
      SparseWork work = sparse_work({9, 14}, module.hidden, 4);
      work.x = work.x.to(torch::kBFloat16).to(torch::kFloat64);
      work.seed = work.seed.to(torch::kBFloat16).to(torch::kFloat64);
      std::vector<ExpertsOutcome> outcomes;
      Tensor chosen;
      for (const torch::Dtype dtype : {torch::kFloat64, torch::kFloat32, torch::kBFloat16}) {
        SparseLayer layer(module, {}, {}, true, dtype);
        for (LocalParameter& parameter : layer.parameters())
          parameter.value.copy_(initial_value(parameter.spec, {}, 7, torch::kBFloat16, true));
        Choices choices;
        if (!chosen.defined()) {
          layer.forward(work.x, work.input, choices);
          chosen = choices.begin()->second;
        }
        choices = layer.choices_of(chosen);
        outcomes.push_back(run_layer_once(layer, work, choices, dtype));
      }
      const auto check = [&](const auto& of) {
        const Tensor exact = of(outcomes[0]);
        if (exact.norm().template item<double>() == 0) return;  // the block's attention
        const auto error = [&](const ExpertsOutcome& outcome) {
          return ((of(outcome).to(torch::kFloat64) - exact).norm() / exact.norm())
              .template item<double>();
        };
        CHECK(error(outcomes[2]) < 4 * 0x1p16 * error(outcomes[1]));
      };
      check([](const ExpertsOutcome& outcome) { return outcome.y; });
      check([](const ExpertsOutcome& outcome) { return outcome.dx; });
      for (std::size_t p = 0; p < outcomes[0].gradients.size(); ++p)
        check([&](const ExpertsOutcome& outcome) { return outcome.gradients[p]; });
      CHECK((outcomes[2].y.scalar_type() == torch::kBFloat16));
      CHECK((outcomes[2].gradients[0].scalar_type() == torch::kFloat32));
    }
  }
}
