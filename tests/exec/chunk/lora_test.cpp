#include <functional>
#include <mutex>
#include <set>

#include "exec/parameters/held_parameters.h"
#include "shared/chunk/held_sizes.h"
#include "shared/kernels/lora.h"
#include "tests/exec/support/expected.h"
#include "tests/exec/support/shards.h"
#include "tests/exec/support/tensor_ranks.h"
#include "tests/exec/support/tiny_model.h"
#include "tests/exec/support/update_terms.h"

#include <doctest/doctest.h>  // after LibTorch, which has a CHECK of its own

using namespace polyphony;
using namespace polyphony::exec;
using namespace polyphony::exec::testing;
using torch::Tensor;

namespace {

constexpr int kRank = 3;
constexpr double kAlpha = 7;

Module adapted(Module module) {
  module.trainable = Trainable::lora;
  module.lora_rank = kRank;
  module.lora_alpha = kAlpha;
  return module;
}
// Vision and language adapted, the projector trained in full; biases, norms and B away from zero.
std::vector<Stage> adapted_model(torch::Dtype dtype) {
  std::vector<Stage> stages = whole_model(dtype);
  for (const std::size_t i : {0u, 2u}) stages[i].module = adapted(stages[i].module);
  return stages;
}
std::vector<Stage> adapted_layers(torch::Dtype dtype) {
  std::vector<Stage> stages = cut_model(dtype);
  for (Stage& stage : stages)
    if (stage.module.kind != ModuleKind::projector) stage.module = adapted(stage.module);
  return stages;
}
std::map<std::string, LocalParameter*> by_name(Chain& chain) {
  std::map<std::string, LocalParameter*> names;
  for (LocalParameter* parameter : chain.parameters()) names[parameter->spec.name] = parameter;
  return names;
}
double difference(const Tensor& value, const Tensor& expected) {
  return ((value - expected).norm() / expected.norm()).item<double>();
}

// The adapted model on 2 and 4 ranks, with and without sequence parallelism.
void for_each_group(const std::function<void(const std::vector<Stage>&, Communicator&)>& body) {
  for (const int tp : {2, 4}) {
    for (const bool sequence : {false, true}) {
      auto stages = adapted_model(torch::kFloat64);
      for (Stage& stage : stages) stage.options.sequence_parallel = sequence;
      on_tensor_ranks(tp, [&](std::size_t, Communicator* group) { body(stages, *group); });
    }
  }
}

}  // namespace

TEST_SUITE("lora") {
  TEST_CASE(
      "it equals the full model with W + (alpha/r) B A, and its gradients follow by the chain "
      "rule") {
    const TestWork work = uneven_work(torch::kFloat64);
    Chain low(adapted_model(torch::kFloat64), nullptr), full(whole_model(torch::kFloat64), nullptr);
    const auto pairs = by_name(low), whole = by_name(full);
    int adapted_weights = 0;
    for (const auto& [name, parameter] : whole) {
      parameter->value.copy_(pairs.at(name)->value);
      const LocalParameter* weight = pairs.at(name);
      if (!weight->lora_a) continue;
      ++adapted_weights;
      CHECK(weight->lora_b->value.abs().max().item<double>() > 0);
      parameter->value.add_(weight->lora_b->value.mm(weight->lora_a->value), kAlpha / kRank);
    }
    CHECK(adapted_weights == 2 * 4 + 2 * 4);  // qkv, out, and two of the feed-forward, per block
    const double loss = low.forward(0, work.input).item<double>();
    CHECK(loss == doctest::Approx(full.forward(0, work.input).item<double>()).epsilon(1e-13));
    low.backward(0);
    full.backward(0);
    for (const auto& [name, parameter] : pairs) {
      CAPTURE(name);
      const bool projector = name.rfind("projector", 0) == 0;
      const bool pair = name.find(".lora_") != std::string::npos;
      REQUIRE(parameter->grad.defined() == (projector || pair));
      if (projector) CHECK(difference(parameter->grad, whole.at(name)->grad) < 1e-12);
      if (!parameter->lora_a) continue;
      // W' = W + s B A: dA = s Bᵀ dW', dB = s dW' Aᵀ.
      const Tensor gradient = whole.at(name)->grad * (kAlpha / kRank);
      const LocalParameter &a = *parameter->lora_a, &b = *parameter->lora_b;
      CHECK(difference(a.grad, b.value.t().mm(gradient)) < 1e-12);
      CHECK(difference(b.grad, gradient.mm(a.value.t())) < 1e-12);
    }
  }

  TEST_CASE("a new pair changes nothing: B starts at zero") {
    auto stages = adapted_model(torch::kFloat64), plain = whole_model(torch::kFloat64);
    for (auto* list : {&stages, &plain})
      for (Stage& stage : *list) stage.options.perturb = false;
    const TestWork work = uneven_work(torch::kFloat64);
    Chain low(stages, nullptr), full(plain, nullptr);
    CHECK(low.forward(0, work.input).item<double>() == full.forward(0, work.input).item<double>());
  }

  TEST_CASE("2 and 4 ranks compute the same as one, once partial gradients are summed") {
    const TestWork work = uneven_work(torch::kFloat64);
    Chain whole(adapted_model(torch::kFloat64), nullptr);
    const double loss = whole.forward(0, work.input).item<double>();
    whole.backward(0);
    const auto expected = by_name(whole);
    std::mutex mutex;
    for_each_group([&](const std::vector<Stage>& stages, Communicator& group) {
      const bool sequence = stages[0].options.sequence_parallel;
      const ShardIndex place{.tensor = group.size(), .tensor_index = group.index()};
      Chain chain(stages, &group);
      HeldParameters held(chain.parameters(), {.place = place, .sequence_parallel = sequence});
      const double mine = chain.forward(0, work.input).item<double>();
      chain.backward_split(0);
      held.reduce_partial(group);
      const std::lock_guard lock(mutex);
      CAPTURE(sequence);
      CHECK(mine == doctest::Approx(loss).epsilon(1e-13));
      for (const LocalParameter* parameter : chain.parameters()) {
        CAPTURE(parameter->spec.name);
        if (!parameter->grad.defined()) continue;
        const Tensor part =
            local_of(expected.at(parameter->spec.name)->grad, parameter->spec, place);
        CHECK(difference(parameter->grad, part) < 1e-12);
      }
    });
    // Of a language block: A of qkv and gate_up, [3, 16] each; B of out and down, [16, 3] each.
    const Module language = adapted(tiny_language());
    CHECK(partial_gradient_elements(parameters(language), {.tensor = 2}, false) ==
          2 * 4 * kRank * 16);
    CHECK(held_elements(parameters(language, {1, 2}), {.tensor = 2}).trained ==
          4 * kRank * 16 +                                       // those
              kRank * (8 + 2 * 4) * 6 / 2 + kRank * 8 * 6 / 2 +  // B of qkv, A of out
              kRank * 2 * 12 / 2 + kRank * 12 / 2);              // B of gate_up, A of down
  }

  TEST_CASE("the issued collectives are those of expand()") {
    const TestWork work = uneven_work(torch::kFloat64);
    std::mutex mutex;
    for_each_group([&](std::vector<Stage> stages, Communicator& group) {
      for (const bool nothing_upstream : {false, true}) {
        if (nothing_upstream) {  // of the language module: its first block wants no input gradient
          stages.erase(stages.begin(), stages.begin() + 2);
          stages[0].options.input_grad = false;
        }
        const TestWork& used = nothing_upstream ? text_only_work(torch::kFloat64) : work;
        Chain chain(stages, &group);
        const auto check = [&](Phase phase) {
          const std::lock_guard lock(mutex);
          for (std::size_t i = 0; i < stages.size(); ++i) {
            CAPTURE(stages[i].module.name);
            const auto expected =
                expand(stages[i].module, stages[i].layers, phase, size_for(used, stages[i].module),
                       context_of(stages[i], group.size()));
            CHECK((chain[i].take_issued() == expected.collectives));
          }
        };
        for (const std::uint64_t work_id : {0u, 1u}) {
          chain.forward(work_id, used.input);
          check(Phase::forward);
          work_id == 0 ? chain.backward(work_id) : chain.backward_split(work_id);
          check(Phase::backward);
        }
      }
    });
  }

  TEST_CASE(
      "the issued matrix multiplications are those of expand(), by layer and in whole modules") {
    const TestWork work = uneven_work(torch::kFloat32);
    for (const auto& stages : {adapted_layers(torch::kFloat32), adapted_model(torch::kFloat32)}) {
      Chain chain(stages, nullptr);
      Tensor x, gradient;
      const auto expected = [&](std::size_t i, Phase phase) {
        return expected_products(expand(stages[i].module, stages[i].layers, phase,
                                        size_for(work, stages[i].module),
                                        {.input_grad = stages[i].options.input_grad}));
      };
      for (std::size_t i = 0; i < chain.size(); ++i) {
        CAPTURE(i);
        CHECK(products_of([&] { x = chain[i].forward(0, x, work.input); }) ==
              expected(i, Phase::forward));
      }
      for (std::size_t i = chain.size(); i-- > 0;) {
        CAPTURE(i);
        CHECK(products_of([&] { gradient = chain[i].backward_input(0, gradient).front(); }) ==
              expected(i, Phase::backward_input));
        CHECK(products_of([&] { chain[i].backward_weight(0); }) ==
              expected(i, Phase::backward_weight));
      }
    }
  }

  TEST_CASE("only adapters train: ten steps lower the loss, base weights do not change") {
    for (const torch::Dtype dtype : {torch::kFloat32, torch::kBFloat16}) {
      Chain chain(adapted_model(dtype), nullptr);
      HeldParameters held(chain.parameters(), {});
      std::map<std::string, Tensor> before;
      for (const auto& [name, parameter] : by_name(chain)) before[name] = parameter->value.clone();
      TestWork work = uneven_work(torch::kFloat64);
      work.input.patches = work.input.patches.to(dtype);
      std::vector<double> losses;
      for (int step = 1; step <= 10; ++step) {
        losses.push_back(chain.forward(0, work.input).item<double>());
        chain.backward(0);
        held.step({}, 1e-2, update_terms(1.0, step));
      }
      CHECK(losses.back() < 0.8 * losses.front());
      for (const auto& [name, parameter] : by_name(chain)) {
        CAPTURE(name);
        CHECK(torch::equal(parameter->value, before.at(name)) == !parameter->spec.trained);
      }
    }
  }

  TEST_CASE("parameters of an adapted module") {
    const std::vector<Parameter> list = parameters(adapted(tiny_language()), {1, 2});
    std::set<std::string> trained;
    for (const Parameter& parameter : list) {
      if (parameter.trained) trained.insert(parameter.name);
      if (parameter.name == "language.block0.qkv.lora_b") {
        CHECK(parameter.cut == Cut::heads);
        CHECK((parameter.shape == std::vector<std::int64_t>{(8 + 2 * 4) * 6, kRank}));
        CHECK(parameter.initial == Initial::zeros);
      }
      if (parameter.name == "language.block0.down.lora_a") {
        CHECK(parameter.cut == Cut::columns);
        CHECK((parameter.shape == std::vector<std::int64_t>{kRank, 12}));
        CHECK(parameter.deviation == doctest::Approx(1 / std::sqrt(12.0)));
      }
    }
    CHECK(trained.size() == 8);
    CHECK(trained.count("language.block0.gate_up.lora_a") == 1);
    Module module = adapted(tiny_language());
    CHECK(low_rank_scale(module) == doctest::Approx(7.0 / 3));
    module.lora_alpha = 0;
    CHECK(low_rank_scale(module) == 1);
  }
}
