// What a chunk with experts saves, and its matrix multiplications.
#include <functional>

#include "shared/chunk/expand.h"
#include "shared/chunk/sizes.h"
#include "tests/exec/support/sparse_layer.h"

#include <c10/core/Allocator.h>
#include <doctest/doctest.h>  // after LibTorch, which has a CHECK of its own

using namespace polyphony;
using namespace polyphony::exec;
using namespace polyphony::exec::testing;
using torch::Tensor;

namespace {

thread_local double flops_seen = 0;
std::unique_ptr<at::ObserverContext> count_flops(const at::RecordFunction& function) {
  const std::string name = function.name();
  if (name != "aten::mm" && name != "aten::addmm" && name != "aten::addmm_") return nullptr;
  const std::size_t first = name == "aten::mm" ? 0 : 1;
  const Tensor a = function.inputs()[first].toTensor(), b = function.inputs()[first + 1].toTensor();
  flops_seen += 2.0 * static_cast<double>(a.size(0) * a.size(1) * b.size(1));
  return nullptr;
}
double flops_of(const std::function<void()>& body) {
  flops_seen = 0;
  const at::CallbackHandle handle =
      at::addThreadLocalCallback(at::RecordFunctionCallback(&count_flops).needsInputs(true));
  body();
  at::removeCallback(handle);
  return flops_seen;
}

// Net bytes of tensors allocated and freed on this thread.
class HeldMemory : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void* /*data*/, std::int64_t size, std::size_t /*allocated*/,
                         std::size_t /*reserved*/, c10::Device /*device*/) override {
    bytes += size;
  }
  bool memoryProfilingEnabled() const override { return true; }
  std::int64_t bytes = 0;
};

ChunkOptions options_of(torch::Dtype dtype) {
  ChunkOptions options;
  options.dtype = dtype;
  options.perturb = true;
  return options;
}

}  // namespace

TEST_SUITE("experts") {
  TEST_CASE("a recomputed forward pass reuses the first choice of experts") {
    ChunkOptions options = options_of(torch::kFloat64);
    options.recompute = Recompute::full;
    exec::Chunk chunk(sparse_language(), {0, 4}, {}, {}, options);
    const auto routers = [&](const std::function<void(Tensor&)>& change) {
      for (LocalParameter& parameter : chunk.parameters())
        if (parameter.spec.name.ends_with("router.weight")) change(parameter.value);
    };
    const TestWork work = text_only_work(options.dtype);
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

  TEST_CASE("the issued matrix multiplications have as many FLOPs as those of expand()") {
    for (const bool lora : {false, true}) {
      Module module = sparse_language();
      module.shared_ffn = 8;
      bias_experts(module);
      if (lora) module.trainable = Trainable::lora, module.lora_rank = 3;
      const TestWork work = uneven_work(torch::kFloat32);
      exec::Chunk chunk(module, {1, 2}, {}, {}, options_of(torch::kFloat32));
      const Tensor x = torch::randn({work.language.tokens, module.hidden});
      const Tensor dy = torch::randn_like(x);
      const auto expected = [&](Phase phase) {
        double flops = 0;
        for (const Kernel& kernel : expand(module, {1, 2}, phase, work.language, {}).kernels)
          if (kernel.kind == KernelKind::gemm) flops += kernel.flops.value;
        return doctest::Approx(flops);
      };
      CHECK(flops_of([&] { chunk.forward(0, x, work.input); }) == expected(Phase::forward));
      CHECK(flops_of([&] { chunk.backward_input(0, dy); }) == expected(Phase::backward_input));
      CHECK(flops_of([&] { chunk.backward_weight(0); }) == expected(Phase::backward_weight));
    }
  }

  TEST_CASE("saved activations are as large as tape_bytes() predicts") {
    for (const double balance : {0.0, 0.3}) {
      Module module = sparse_language(), empty = sparse_language();
      module.balance_weight = balance;
      empty.experts = empty.experts_per_token = empty.expert_ffn = 0;
      const SparseWork work = sparse_work({9, 14}, module.hidden, 2);
      const WorkSize size{.tokens = 23};
      const ChunkContext context{.precision = NumberFormat::fp64};
      const Bytes expected =
          tape_bytes(module, {1, 2}, size, context) - tape_bytes(empty, {1, 2}, size, context);
      SparseLayer layer(module, {}, {});
      Choices choices;
      const Tensor x = work.x.clone().requires_grad_(true);
      const auto held = std::make_shared<HeldMemory>();
      const std::int64_t plan = balance > 0 ? 8 * (2 + 23) : 0;  // T_s, and each token's sample
      const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, held);
      Tensor y = layer.forward(x, work.input, choices);
      const auto node = y.grad_fn();
      y = Tensor();
      CHECK(Bytes(held->bytes - plan) == expected);
    }
  }
}
