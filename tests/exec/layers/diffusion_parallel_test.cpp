#include <map>
#include <mutex>

#include "tests/exec/support/expected.h"
#include "tests/exec/support/shards.h"
#include "tests/exec/support/tensor_ranks.h"
#include "tests/exec/support/tiny_diffusion.h"

#include <doctest/doctest.h>  // after LibTorch, which has a CHECK of its own

using namespace polyphony;
using namespace polyphony::exec;
using namespace polyphony::exec::testing;
using torch::Tensor;

namespace {

ChunkContext context_of(const ChunkOptions& options, int tp) {
  return {.tp = tp,
          .sp = options.sequence_parallel && tp > 1,
          .recompute = options.recompute,
          .recomputed = options.recomputed,
          .precision = options.dtype == torch::kFloat64 ? NumberFormat::fp64 : NumberFormat::fp32,
          .input_grad = options.input_grad,
          .edge_grad = options.edge_grad,
          .weight_grad = options.trainable};
}

// Two chunks on two ranks, on microbatches with items of all kinds, with an unconditioned item, and
// with none: what is issued equals expand(), whether the backward is split or not.
void check_collectives(const Module& module, const ChunkOptions& options) {
  for (const FlowWork& work :
       {uneven_flow(module, options.dtype), flow_work(module, {}, options.dtype),
        flow_work(module, {{4, 0}}, options.dtype)}) {
    std::mutex mutex;
    int checked = 0;
    on_tensor_ranks(2, [&](std::size_t, Communicator* group) {
      FlowChain chain(module, kTwo, options, group), split(module, kTwo, options, group);
      std::vector<std::vector<InnerCollective>> forward;
      chain.forward(0, work);
      split.forward(0, work);
      for (std::size_t i = 0; i < chain.size(); ++i) {
        forward.push_back(chain[i].take_issued());
        split[i].take_issued();
      }
      chain.backward(0);
      split.backward(0, true);
      const std::lock_guard lock(mutex);
      for (std::size_t i = 0; i < chain.size(); ++i) {
        CAPTURE(i);
        const auto expected = [&](Phase phase) {
          return expand(module, kTwo[i], phase, work.size, context_of(options, 2)).collectives;
        };
        CHECK((forward[i] == expected(Phase::forward)));
        CHECK((chain[i].take_issued() == expected(Phase::backward)));
        CHECK((split[i].take_issued() == expected(Phase::backward_input)));
        ++checked;
      }
    });
    CHECK(checked == 4);
  }
}

}  // namespace

TEST_SUITE("diffusion") {
  TEST_CASE("2 and 4 ranks compute the same as one, with and without sequence parallelism") {
    for (const Module& module : {tiny_diffusion(), adapted_diffusion()}) {
      const FlowWork work = uneven_flow(module, torch::kFloat64);
      FlowChain alone(module, kTwo, flow_options(torch::kFloat64), nullptr);
      const FlowResult whole = run(alone, work);
      for (const int tp : {2, 4}) {
        for (const bool sequence : {false, true}) {
          ChunkOptions options = flow_options(torch::kFloat64);
          options.sequence_parallel = sequence;
          std::mutex mutex;
          on_tensor_ranks(tp, [&](std::size_t rank, Communicator* group) {
            const auto index = static_cast<int>(rank);
            FlowChain chain(module, kTwo, options, group);
            const ShardIndex shard{.tensor = tp, .tensor_index = index};
            FlowResult found = run(chain, work);
            for (std::size_t i = 0; i < found.gradients.size(); ++i)
              if (found.gradients[i].defined() &&
                  alone.parameters()[i]->spec.sums_over_tensor(shard, sequence))
                group->all_reduce(found.gradients[i], Reduction::sum);
            const std::lock_guard lock(mutex);
            CHECK(std::abs(found.loss - whole.loss) < 1e-12 * whole.loss);
            CHECK((found.conditioning - chain.own(whole.conditioning)).norm().item<double>() <
                  1e-12 * whole.conditioning.norm().item<double>());
            for (std::size_t i = 0; i < whole.gradients.size(); ++i) {
              const Parameter& spec = alone.parameters()[i]->spec;
              CAPTURE(spec.name);
              REQUIRE(found.gradients[i].defined() == spec.trained);
              if (!spec.trained) continue;
              const Tensor expected = local_of(whole.gradients[i], spec, shard);
              CHECK((found.gradients[i] - expected).norm().item<double>() <=
                    1e-12 * whole.gradients[i].norm().item<double>());
            }
          });
        }
      }
    }
  }

  TEST_CASE("the issued collectives are those of expand(), in order") {
    std::vector<ChunkOptions> cases(7, flow_options(torch::kFloat32));
    cases[1].trainable = false;  // passes the gradient on to its conditioning
    cases[2].edge_grad = false;  // nothing before it is trained
    cases[3].recompute = cases[4].recompute = cases[5].recompute = Recompute::full;
    cases[4].trainable = false;
    cases[5].edge_grad = false;
    cases[6].recompute = Recompute::selective;
    for (const bool sequence : {false, true})
      for (ChunkOptions options : cases) {
        options.sequence_parallel = sequence;
        check_collectives(tiny_diffusion(), options);
        if (options.trainable) check_collectives(adapted_diffusion(), options);
      }
  }

  TEST_CASE("the issued matrix multiplications are those of expand()") {
    struct Case {
      bool trained, edge, adapted;
    };
    for (const auto& [trained, edge, adapted] :
         {Case{true, true, false}, Case{true, false, false}, Case{false, true, false},
          Case{true, true, true}, Case{true, false, true}}) {
      const Module module = adapted ? adapted_diffusion() : tiny_diffusion();
      const FlowWork work = uneven_flow(module, torch::kFloat32);
      for (const std::vector<LayerRange>& cut : {kTwo, kCut}) {
        ChunkOptions options = flow_options(torch::kFloat32);
        options.trainable = trained;
        options.edge_grad = edge;
        FlowChain chain(module, cut, options, nullptr);
        Tensor x, gradient;
        const auto expected = [&](std::size_t i, Phase phase) {
          return expected_products(
              expand(module, cut[i], phase, work.size, context_of(options, 1)));
        };
        for (std::size_t i = 0; i < chain.size(); ++i) {
          std::vector<Tensor> inputs = {work.conditioning};
          if (i > 0) inputs.insert(inputs.begin(), x);
          CHECK(products_of([&] { x = chain[i].forward(0, inputs, work.input); }) ==
                expected(i, Phase::forward));
        }
        for (std::size_t i = chain.size(); i-- > 0;) {
          CAPTURE(i);
          CHECK(products_of([&] { gradient = chain[i].backward_input(0, gradient).front(); }) ==
                expected(i, Phase::backward_input));
          CHECK(products_of([&] { chain[i].backward_weight(0); }) ==
                (trained ? expected(i, Phase::backward_weight) : std::vector<Product>{}));
        }
      }
    }
  }

  TEST_CASE("LoRA equals the full module with W + (alpha/r) B A") {
    const Module module = adapted_diffusion();
    const FlowWork work = uneven_flow(module, torch::kFloat64);
    FlowChain low(module, kTwo, flow_options(torch::kFloat64), nullptr);
    FlowChain full(tiny_diffusion(), kTwo, flow_options(torch::kFloat64), nullptr);
    std::map<std::string, LocalParameter*> names;
    for (LocalParameter* parameter : low.parameters()) names[parameter->spec.name] = parameter;
    int pairs = 0;
    for (LocalParameter* parameter : full.parameters()) {
      const LocalParameter* weight = names.at(parameter->spec.name);
      parameter->value.copy_(weight->value);
      if (!weight->lora_a) continue;
      ++pairs;
      parameter->value.add_(weight->lora_b->value.mm(weight->lora_a->value), 7.0 / 3);
    }
    CHECK(pairs == 3 * 7);  // qkv, out, three across, fc1, fc2
    const FlowResult found = run(low, work), expected = run(full, work);
    CHECK(found.loss == doctest::Approx(expected.loss).epsilon(1e-12));
    CHECK((found.conditioning - expected.conditioning).norm().item<double>() <
          1e-11 * expected.conditioning.norm().item<double>());
    // W' = W + s B A: dB = s dW' Aᵀ, dA = s Bᵀ dW'.
    for (LocalParameter* parameter : full.parameters()) {
      const LocalParameter* weight = names.at(parameter->spec.name);
      CAPTURE(parameter->spec.name);
      CHECK_FALSE(weight->grad.defined());
      if (!weight->lora_a) continue;
      const Tensor a = weight->lora_a->value, b = weight->lora_b->value;
      const Tensor da = b.t().mm(parameter->grad) * (7.0 / 3);
      const Tensor db = parameter->grad.mm(a.t()) * (7.0 / 3);
      CHECK((weight->lora_a->grad - da).norm().item<double>() < 1e-11 * da.norm().item<double>());
      CHECK((weight->lora_b->grad - db).norm().item<double>() < 1e-11 * db.norm().item<double>());
    }
  }
}
