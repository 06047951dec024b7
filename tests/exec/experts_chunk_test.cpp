// Chunks with experts: what they issue, count and keep is what shared/ says beforehand.
#include <map>

#include "exec/in_process.h"
#include "shared/expand.h"
#include "shared/plan/sizes.h"
#include "tests/exec/shards.h"
#include "tests/exec/sparse_layer.h"

#include <c10/core/Allocator.h>
#include <doctest/doctest.h>  // after LibTorch, which has a CHECK of its own

using namespace polyphony;
using namespace polyphony::exec;
using namespace polyphony::exec::testing;
using torch::Tensor;

namespace {

Module whole_sparse() {
  Module module = sparse_language();
  module.shared_ffn = 8;
  return module;
}
LayerRange all_layers(const Module& module) {
  return {0, static_cast<std::uint16_t>(layers(module).size())};
}
ChunkOptions options_of(torch::Dtype dtype) {
  ChunkOptions options;
  options.dtype = dtype;
  options.perturb = true;
  options.input_grad = false;
  return options;
}

// Unequal lanes, one of them empty.
TestWork lane_work(int lane, torch::Dtype dtype) {
  const std::vector<std::vector<SampleShape>> lanes = {
      {{{}, 5, 2}, {{}, 12, 4}}, {}, {{{}, 1, 1}, {{}, 3, 0}, {{}, 20, 6}}, {{{}, 2, 1}}};
  TestWork work = make_work(lanes[static_cast<std::size_t>(lane)], dtype, 30 + lane);
  work.input.balance_scale = 1.0 / 6;
  return work;
}

struct Outcome {
  double loss = 0;
  std::vector<InnerCollective> forward, backward, weight;
  std::vector<Tensor> gradients;
};
Outcome run_chunk(exec::Chunk& chunk, const TestWork& work, bool split) {
  Outcome out;
  out.loss = chunk.forward(0, Tensor(), work.input).item<double>();
  out.forward = chunk.take_issued();
  split ? chunk.backward_input(0, Tensor()) : chunk.backward(0, Tensor());
  out.backward = chunk.take_issued();
  if (split) chunk.backward_weight(0);
  out.weight = chunk.take_issued();
  for (const LocalParameter& parameter : chunk.parameters()) out.gradients.push_back(parameter.grad);
  return out;
}

// Rank t + tp·l, as in experts_test.cpp.
std::vector<Outcome> run_lanes(const Module& module, const ChunkOptions& options, int tp, int ep,
                               bool split) {
  std::vector<Outcome> outcomes(static_cast<std::size_t>(tp * ep));
  run_in_process(tp * ep, [&](Transport& transport) {
    torch::set_num_threads(1);
    const int rank = static_cast<int>(transport.rank().value), t = rank % tp, lane = rank / tp;
    std::vector<Rank> tensor, expert;
    for (int i = 0; i < tp; ++i) tensor.emplace_back(static_cast<std::size_t>(tp * lane + i));
    for (int i = 0; i < ep; ++i) expert.emplace_back(static_cast<std::size_t>(t + tp * i));
    const auto tensor_group = transport.make_group("tensor" + std::to_string(lane), tensor);
    const auto expert_group = transport.make_group("expert" + std::to_string(t), expert);
    exec::Chunk chunk(module, all_layers(module),
                {.tensor = tensor_group.get(), .expert = expert_group.get()},
                {.tensor = tp, .tensor_index = t, .expert = ep, .expert_index = lane}, options);
    outcomes[transport.rank().value] =
        run_chunk(chunk, lane_work(lane, options.dtype), split);
  });
  return outcomes;
}

thread_local double flops_seen = 0;
std::unique_ptr<at::ObserverContext> count_flops(const at::RecordFunction& function) {
  const std::string name = function.name();
  if (name != "aten::mm" && name != "aten::addmm" && name != "aten::addmm_") return nullptr;
  const std::size_t first = name == "aten::mm" ? 0 : 1;
  const Tensor a = function.inputs()[first].toTensor(), b = function.inputs()[first + 1].toTensor();
  flops_seen += 2.0 * static_cast<double>(a.size(0) * a.size(1) * b.size(1));
  return nullptr;
}
template <class Body>
double flops_of(Body body) {
  flops_seen = 0;
  const at::CallbackHandle handle =
      at::addThreadLocalCallback(at::RecordFunctionCallback(&count_flops).needsInputs(true));
  body();
  at::removeCallback(handle);
  return flops_seen;
}

// Bytes that tensors of this thread hold, from its making on.
class HeldMemory : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void* /*data*/, std::int64_t size, std::size_t /*allocated*/,
                         std::size_t /*reserved*/, c10::Device /*device*/) override {
    bytes += size;
  }
  bool memoryProfilingEnabled() const override { return true; }
  std::int64_t bytes = 0;
};

}  // namespace

TEST_SUITE("experts") {
  TEST_CASE("lanes and tensor ranks together compute what one rank does") {
    const Module module = whole_sparse();
    const ChunkOptions options = options_of(torch::kFloat64);
    for (const int ep : {2, 4}) {
      std::vector<Outcome> alone;
      std::vector<Tensor> sums;
      for (int lane = 0; lane < ep; ++lane) {
        exec::Chunk chunk(module, all_layers(module), {}, {}, options);
        alone.push_back(run_chunk(chunk, lane_work(lane, options.dtype), false));
        for (std::size_t p = 0; p < alone.back().gradients.size(); ++p) {
          const Tensor& gradient = alone.back().gradients[p];
          lane == 0 ? sums.push_back(gradient.clone()) : (void)sums[p].add_(gradient);
        }
      }
      for (const int tp : {1, 2}) {
        const std::vector<Outcome> ranks = run_lanes(module, options, tp, ep, false);
        const std::vector<Parameter> specs = polyphony::parameters(module, all_layers(module));
        for (std::size_t p = 0; p < specs.size(); ++p) {
          CAPTURE(specs[p].name);
          CHECK_FALSE(specs[p].sums_over_tensor({.tensor = tp}, false));
          for (int t = 0; t < tp; ++t) {
            Tensor whole;  // over lanes; of experts each lane has its own
            for (int lane = 0; lane < ep; ++lane) {
              const ShardIndex shard{
                  .tensor = tp, .tensor_index = t, .expert = ep, .expert_index = lane};
              const Tensor& mine = ranks[static_cast<std::size_t>(t + tp * lane)].gradients[p];
              whole = whole.defined() && !specs[p].expert ? whole + mine : mine;
              if (!specs[p].expert && lane + 1 < ep) continue;
              const Tensor expected = local_of(sums[p], specs[p], shard);
              CHECK((whole - expected).norm().item<double>() <=
                    1e-12 * sums[p].norm().item<double>());
              CHECK(sums[p].norm().item<double>() > 1e-6);
            }
          }
        }
        for (int lane = 0; lane < ep; ++lane)
          CHECK(ranks[static_cast<std::size_t>(tp * lane)].loss ==
                doctest::Approx(alone[static_cast<std::size_t>(lane)].loss).epsilon(1e-12));
      }
    }
  }

  TEST_CASE("the collectives issued are expand()'s, in order") {
    for (const torch::Dtype dtype : {torch::kFloat64, torch::kFloat32}) {
      const auto precision = dtype == torch::kFloat64 ? NumberFormat::fp64 : NumberFormat::fp32;
      ChunkOptions options = options_of(dtype);
      for (const int tp : {1, 2}) {
        for (const int ep : {1, 2, 4}) {
          for (const bool recompute : {false, true}) {
            Module module = whole_sparse();
            if (recompute) module.balance_weight = 0;
            options.recompute = recompute;
            const bool split = dtype == torch::kFloat64;
            const std::vector<Outcome> ranks = run_lanes(module, options, tp, ep, split);
            for (std::size_t r = 0; r < ranks.size(); ++r) {
              const TestWork work = lane_work(static_cast<int>(r) / tp, dtype);
              const ChunkContext context{.tp = tp, .ep = ep, .expert_tp = tp,
                                         .precision = precision, .input_grad = false};
              const auto expected = [&](Phase phase) {
                return expand(module, all_layers(module), phase, work.language, context)
                    .collectives;
              };
              CHECK((ranks[r].forward == expected(Phase::forward)));
              std::vector<InnerCollective> backward =
                  expected(split ? Phase::backward_input : Phase::backward);
              if (recompute) {
                const auto again = expected(Phase::recompute);
                backward.insert(backward.begin(), again.begin(), again.end());
              }
              CHECK((ranks[r].backward == backward));
              CHECK(ranks[r].weight.empty());
            }
          }
        }
      }
    }
  }

  TEST_CASE("split and recomputed backwards give the same bits") {
    const Module module = whole_sparse();
    ChunkOptions options = options_of(torch::kFloat32);
    const TestWork work = lane_work(2, options.dtype);
    exec::Chunk plain(module, all_layers(module), {}, {}, options);
    const Outcome expected = run_chunk(plain, work, false);
    for (const bool recompute : {false, true}) {
      options.recompute = recompute;
      exec::Chunk chunk(module, all_layers(module), {}, {}, options);
      const Outcome outcome = run_chunk(chunk, work, /*split=*/true);
      for (std::size_t p = 0; p < outcome.gradients.size(); ++p)
        CHECK(torch::equal(outcome.gradients[p], expected.gradients[p]));
    }
  }

  TEST_CASE("a recomputed forward takes the choice that was made first") {
    const Module module = whole_sparse();
    ChunkOptions options = options_of(torch::kFloat64);
    options.recompute = true;
    exec::Chunk chunk(module, all_layers(module), {}, {}, options);
    const auto routers = [&](const auto& change) {
      for (LocalParameter& parameter : chunk.parameters())
        if (parameter.spec.name.ends_with("router.weight")) change(parameter.value);
    };
    const TestWork work = lane_work(0, options.dtype);
    routers([](Tensor& value) { value.zero_(); });  // ties: experts 0 and 1
    chunk.forward(0, Tensor(), work.input);
    routers([](Tensor& value) { value.normal_(); });
    chunk.backward(0, Tensor());
    for (const LocalParameter& parameter : chunk.parameters()) {
      if (!parameter.spec.expert) continue;
      CHECK(parameter.grad.narrow(0, 0, 2).abs().max().item<double>() > 0);
      CHECK(parameter.grad.narrow(0, 2, 6).abs().max().item<double>() == 0);
    }
  }

  TEST_CASE("the matrix products issued are as many FLOPs as expand()'s") {
    const Module module = whole_sparse();
    const TestWork work = lane_work(2, torch::kFloat32);
    exec::Chunk chunk(module, {1, 2}, {}, {}, options_of(torch::kFloat32));
    const Tensor x = torch::randn({work.language.tokens, module.hidden}), dy = torch::randn_like(x);
    const auto expected = [&](Phase phase) {
      double flops = 0;
      for (const Kernel& kernel :
           expand(module, {1, 2}, phase, work.language, {.input_grad = false}).kernels)
        if (kernel.kind == KernelKind::gemm) flops += kernel.flops.value;
      return doctest::Approx(flops);
    };
    CHECK(flops_of([&] { chunk.forward(0, x, work.input); }) == expected(Phase::forward));
    CHECK(flops_of([&] { chunk.backward_input(0, dy); }) ==
          expected(Phase::backward_input));
    CHECK(flops_of([&] { chunk.backward_weight(0); }) == expected(Phase::backward_weight));
  }

  TEST_CASE("the tape is as large as tape_bytes() says") {
    for (const double balance : {0.0, 0.3}) {
      Module module = sparse_language(), empty = sparse_language();
      module.balance_weight = balance;
      empty.experts = empty.experts_per_token = empty.expert_ffn = 0;
      const SparseWork work = sparse_work({9, 14}, module.hidden, 2);
      const WorkSize size{.tokens = 23};
      const ChunkContext context{.precision = NumberFormat::fp64};
      const Bytes expected = tape_bytes(module, {1, 2}, size, context) -
                             tape_bytes(empty, {1, 2}, size, context);
      SparseLayer layer(module, {}, {});
      Choices choices;
      const Tensor x = work.x.clone().requires_grad_(true);
      const auto held = std::make_shared<HeldMemory>();
      const std::int64_t plan = balance > 0 ? 8 * (2 + 23) : 0;  // T_s, and each token's sample
      {
        const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, held);
        Tensor y = layer.forward(x, work.input, choices);
        const auto node = y.grad_fn();
        y = Tensor();
        CHECK(Bytes(held->bytes - plan) == expected);
      }
    }
  }
}
