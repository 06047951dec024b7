#include <mutex>

#include "exec/chunk/chunk.h"
#include "exec/transport/in_process.h"
#include "tests/exec/support/expected.h"
#include "tests/exec/support/fused_adamw.h"
#include "tests/exec/support/shards.h"
#include "tests/exec/support/tensor_ranks.h"
#include "tests/exec/support/tiny_model.h"

#include <doctest/doctest.h>  // after LibTorch, which has a CHECK of its own

using namespace polyphony;
using namespace polyphony::exec;
using namespace polyphony::exec::testing;
using torch::Tensor;

namespace {

// Results of one rank of a tensor-parallel run.
struct Outcome {
  double loss = 0;
  std::vector<Tensor> gradients;
  std::vector<std::vector<InnerCollective>> forward, backward;  // by stage
  Tensor predicted;
  double squared_norm = 0;
};

// Σ g² over the elements that `shard` owns (Parameter::owned_parts).
double squared_norm(const std::vector<LocalParameter>& parameters, const ShardIndex& shard) {
  double total = 0;
  for (const LocalParameter& parameter : parameters) {
    if (!parameter.grad.defined()) continue;
    const std::vector<Interval> owned = parameter.spec.owned_parts(shard);
    if (owned.empty()) continue;
    Tensor counted = parameter.grad;
    if (owned != parameter.spec.parts(shard))  // owned parts come first
      counted = counted.narrow(parameter.spec.cut_dimension(), 0, owned.front().size());
    total += counted.square().sum().item<double>();
  }
  return total;
}

Outcome run_rank(const std::vector<Stage>& stages, Communicator* group, const TestWork& work) {
  Outcome out;
  Chain chain(stages, group);
  out.loss = chain.forward(0, work.input).item<double>();
  for (std::size_t i = 0; i < chain.size(); ++i) out.forward.push_back(chain[i].take_issued());
  chain.backward(0);
  for (std::size_t i = 0; i < chain.size(); ++i) {
    out.backward.push_back(chain[i].take_issued());
    out.squared_norm += squared_norm(
        chain[i].parameters(),
        group ? ShardIndex{.tensor = group->size(), .tensor_index = group->index()} : ShardIndex{});
  }
  for (const LocalParameter* parameter : chain.parameters())
    out.gradients.push_back(parameter->grad);
  Tensor x = chain[0].forward(1, Tensor(), work.input);
  x = chain[1].forward(1, x, work.input);
  out.predicted = chain[2].predict({x}, work.input).ids;
  return out;
}

std::vector<Outcome> run_group(const std::vector<Stage>& stages, int tp, const TestWork& work) {
  std::vector<Outcome> outcomes(static_cast<std::size_t>(tp));
  on_tensor_ranks(tp, [&](std::size_t rank, Communicator* group) {
    outcomes[rank] = run_rank(stages, group, work);
  });
  return outcomes;
}

}  // namespace

TEST_SUITE("chunk tensor parallel") {
  TEST_CASE("2 and 4 ranks compute the same as one") {
    const auto stages = whole_model(torch::kFloat64);
    const TestWork work = uneven_work(torch::kFloat64);
    const Outcome whole = run_rank(stages, nullptr, work);
    CHECK(whole.forward[0].empty());
    Chain names(stages, nullptr);
    for (const int tp : {2, 4}) {
      const std::vector<Outcome> ranks = run_group(stages, tp, work);
      double squared = 0;
      for (int t = 0; t < tp; ++t) {
        const Outcome& rank = ranks[static_cast<std::size_t>(t)];
        CHECK(std::abs(rank.loss - whole.loss) < 1e-12 * whole.loss);
        CHECK(torch::equal(rank.predicted, whole.predicted));
        squared += rank.squared_norm;
        for (std::size_t i = 0; i < whole.gradients.size(); ++i) {
          const Parameter& spec = names.parameters()[i]->spec;
          CAPTURE(spec.name);
          const Tensor expected =
              local_of(whole.gradients[i], spec, {.tensor = tp, .tensor_index = t});
          CHECK((rank.gradients[i] - expected).norm().item<double>() <=
                1e-12 * whole.gradients[i].norm().item<double>());
        }
      }
      CHECK(squared == doctest::Approx(whole.squared_norm).epsilon(1e-12));
    }
  }

  TEST_CASE("the issued collectives are those of expand(), in order") {
    for (const torch::Dtype dtype : {torch::kFloat64, torch::kFloat32}) {
      for (const auto& [recompute, pieces] : {std::pair(Recompute::none, 1),
                                              {Recompute::selective, 1},
                                              {Recompute::full, 1},
                                              {Recompute::none, 3},
                                              {Recompute::full, 3}}) {
        auto stages = in_pieces(whole_model(dtype), pieces);
        for (Stage& stage : stages) stage.options.recompute = recompute;
        for (const TestWork& work : {uneven_work(dtype), text_only_work(dtype),
                                     no_label_work(dtype), make_work({}, dtype, 1)}) {
          for (const Outcome& rank : run_group(stages, 2, work)) {
            for (std::size_t i = 0; i < stages.size(); ++i) {
              CAPTURE(stages[i].module.name);
              const auto expected = [&](Phase phase) {
                return expand(stages[i].module, stages[i].layers, phase,
                              size_for(work, stages[i].module), context_of(stages[i], 2))
                    .collectives;
              };
              CHECK((rank.forward[i] == expected(Phase::forward)));
              CHECK((rank.backward[i] == expected(Phase::backward)));
            }
          }
        }
      }
    }
  }

  TEST_CASE("collectives without input gradients, and in a frozen module") {
    const TestWork work = uneven_work(torch::kFloat64);
    auto stages = whole_model(torch::kFloat64);
    stages[0].options.trainable = false;   // nothing is saved
    stages[1].options.input_grad = false;  // so no gradient before the projector
    stages[2].options.trainable = false;   // frozen, passes the gradient on
    std::mutex mutex;
    int checked = 0;
    run_in_process(2, [&](Transport& transport) {
      const auto group = transport.make_group("tensor", {Rank(0), Rank(1)});
      Chain chain(stages, group.get());
      chain.forward(0, work.input);
      for (std::size_t i = 0; i < chain.size(); ++i) chain[i].take_issued();
      chain[1].backward(0, chain[2].backward(0, Tensor()).front());
      const std::lock_guard lock(mutex);
      for (const std::size_t i : {1u, 2u}) {
        const auto expected = expand(stages[i].module, stages[i].layers, Phase::backward,
                                     size_for(work, stages[i].module), context_of(stages[i], 2));
        CHECK((chain[i].take_issued() == expected.collectives));
        ++checked;
      }
    });
    CHECK(checked == 4);
  }

  TEST_CASE("the issued matrix multiplications are those of expand()") {
    const TestWork work = uneven_work(torch::kFloat32);
    for (const bool frozen : {false, true}) {
      auto stages = cut_model(torch::kFloat32);
      for (Stage& stage : stages)
        stage.options.trainable = !frozen || stage.module.kind == ModuleKind::projector;
      Tensor x, gradient;
      Chain chain(stages, nullptr);
      const auto expected = [&](std::size_t i, Phase phase) {
        return expected_products(expand(stages[i].module, stages[i].layers, phase,
                                        size_for(work, stages[i].module),
                                        context_of(stages[i], 1)));
      };
      for (std::size_t i = 0; i < chain.size(); ++i) {
        CHECK(products_of([&] { x = chain[i].forward(0, x, work.input); }) ==
              expected(i, Phase::forward));
      }
      for (std::size_t i = chain.size(); i-- > 0;) {
        CAPTURE(i);
        if (frozen && stages[i].module.kind == ModuleKind::vision)
          break;  // input_grad stays on after layer 0 there
        CHECK(products_of([&] { gradient = chain[i].backward_input(0, gradient).front(); }) ==
              expected(i, Phase::backward_input));
        CHECK(products_of([&] { chain[i].backward_weight(0); }) ==
              (stages[i].options.trainable ? expected(i, Phase::backward_weight)
                                           : std::vector<Product>{}));
      }
    }
  }

  TEST_CASE("every rank draws its slice of the same initial model") {
    for (const Module& module : {tiny_vision(), tiny_projector(), tiny_language()}) {
      for (const Parameter& spec : parameters(module)) {
        const Tensor whole = initial_value(spec, {}, 9, torch::kFloat64, false);
        CHECK(whole.sizes().vec() == spec.shape);
        for (int t = 0; t < 4; ++t) {
          CHECK(torch::equal(
              initial_value(spec, {.tensor = 4, .tensor_index = t}, 9, torch::kFloat64, false),
              local_of(whole, spec, {.tensor = 4, .tensor_index = t})));
        }
        if (spec.initial == Initial::normal && spec.count() > 300) {
          // Mean 0 ± d/√n, deviation d (1 ± 1/√(2n)): four sigma.
          const double n = static_cast<double>(spec.count());
          CHECK(std::abs(whole.mean().item<double>()) < 4 * spec.deviation / std::sqrt(n));
          CHECK(std::abs(whole.std().item<double>() / spec.deviation - 1) < 4 / std::sqrt(2 * n));
        }
      }
    }
  }
}

TEST_CASE("two AdamW steps by hand") {
  // g = 2·clip 0.5 = 1 then −1; β1 0.9, β2 0.99, rate 0.1, decay 0.5, ε 0: m̂/√v̂ is 1 at the first
  // step. Step 1: w = 3·(1 − 0.05) − 0.1 = 2.75. Step 2: m = 0.9·0.1 − 0.1 = −0.01, m̂ =
  // −0.01/0.19; v = 0.99·0.01 + 0.01 = 0.0199, v̂ = 0.0199/0.0199 = 1;
  //         w = 2.75·0.95 + 0.1·0.01/0.19.
  const auto make = [](bool decay) {
    LocalParameter parameter;
    parameter.spec.name = decay ? "matrix" : "bias";
    parameter.spec.decay = decay;
    parameter.value = torch::full({3}, 3.0, torch::kFloat64);
    parameter.grad = torch::full({3}, 2.0, torch::kFloat64);
    return parameter;
  };
  std::vector<LocalParameter> parameters = {make(true), make(false), make(false)};
  parameters[2].grad = Tensor();  // frozen
  FusedAdamW adamw({&parameters[0], &parameters[1], &parameters[2]},
                   {.beta1 = 0.9, .beta2 = 0.99, .epsilon = 0, .weight_decay = 0.5});
  adamw.step(0.1, 0.5);
  CHECK(parameters[0].value[0].item<double>() == doctest::Approx(2.75).epsilon(1e-12));
  CHECK(parameters[1].value[0].item<double>() == doctest::Approx(2.9).epsilon(1e-12));
  CHECK(parameters[2].value[0].item<double>() == 3.0);
  CHECK(parameters[0].grad.abs().sum().item<double>() == 0);
  for (int i : {0, 1}) parameters[static_cast<std::size_t>(i)].grad.fill_(-1);
  adamw.step(0.1, 1.0);
  CHECK(parameters[0].value[0].item<double>() ==
        doctest::Approx(2.75 * 0.95 + 0.1 * 0.01 / 0.19).epsilon(1e-12));
  CHECK(parameters[1].value[0].item<double>() ==
        doctest::Approx(2.9 + 0.1 * 0.01 / 0.19).epsilon(1e-12));
}
