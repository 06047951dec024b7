#include <algorithm>
#include <mutex>

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include "exec/chunk/chunk.h"
#include "exec/transport/in_process.h"
#include "shared/chunk/sizes.h"
#include "tests/exec/support/expected.h"
#include "tests/exec/support/tiny_model.h"

#include <doctest/doctest.h>  // after LibTorch, which has a CHECK of its own

using namespace polyphony;
using namespace polyphony::exec;
using namespace polyphony::exec::testing;
using torch::Tensor;

namespace {

// Bytes of this thread's tensors: now, and at the peak.
class Meter : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void*, std::int64_t size, std::size_t, std::size_t, c10::Device) override {
    live += size;
    most = std::max(most, live);
  }
  bool memoryProfilingEnabled() const override { return true; }
  std::int64_t live = 0, most = 0;
};

struct Held {
  std::int64_t tape = 0;  // between forward and backward, without the output
  std::int64_t most = 0;  // on top of that, during the backward
};
Held measure(const Module& module, LayerRange layers, const ChunkOptions& options, const Tensor& x,
             const WorkInput& data) {
  const auto meter = std::make_shared<Meter>();
  Held held;
  for (const std::uint64_t work : {0u, 1u}) {  // the first run also allocates what persists
    Chunk chunk(module, layers, {}, {}, options);
    const Tensor gradient = torch::ones({x.size(0), module.hidden}, x.options());
    const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, meter);
    const std::int64_t before = meter->live;
    const Tensor y = chunk.forward(work, x, data);
    held.tape = meter->live - before - y.numel() * y.element_size();
    meter->most = meter->live;
    const std::int64_t kept = meter->live;
    chunk.backward(work, gradient);
    held.most = meter->most - kept;
  }
  return held;
}

struct RecomputeOutcome {
  std::vector<Tensor> gradients;
  std::vector<std::vector<InnerCollective>> backward, split;
  std::vector<std::vector<Product>> products;
};
RecomputeOutcome run_recompute_rank(const std::vector<Stage>& stages, Communicator* group,
                                    const TestWork& work) {
  RecomputeOutcome out;
  Chain chain(stages, group);
  chain.forward(0, work.input);
  chain.forward(1, work.input);
  for (std::size_t i = 0; i < chain.size(); ++i) chain[i].take_issued();
  out.backward.resize(chain.size());
  out.split.resize(chain.size());
  out.products.resize(chain.size());
  Tensor gradient;
  for (std::size_t i = chain.size(); i-- > 0;) {
    out.products[i] = products_of([&] { gradient = chain[i].backward(0, gradient).front(); });
    out.backward[i] = chain[i].take_issued();
  }
  chain.backward_split(1);
  for (std::size_t i = 0; i < chain.size(); ++i) out.split[i] = chain[i].take_issued();
  for (const LocalParameter* parameter : chain.parameters())
    out.gradients.push_back(parameter->grad);
  return out;
}

}  // namespace

TEST_SUITE("recompute") {
  TEST_CASE("collectives, GEMMs and gradients, block by block, under sequence parallelism") {
    const TestWork work = make_work({{{16}, 5, 2}, {{4, 16}, 8, 2}}, torch::kFloat64, 3);
    std::vector<RecomputeOutcome> kept(2);
    std::mutex mutex;
    for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
      for (const LayerRange range : {kAllLayers, LayerRange{2, 3}}) {
        auto stages = whole_model(torch::kFloat64);
        for (Stage& stage : stages) {
          stage.options.sequence_parallel = true;
          stage.options.recompute = recompute;
          stage.options.recomputed = range;
        }
        run_in_process(2, [&](Transport& transport) {
          const auto group = transport.make_group("tensor", {Rank(0), Rank(1)});
          const RecomputeOutcome out = run_recompute_rank(stages, group.get(), work);
          const std::lock_guard lock(mutex);
          for (std::size_t i = 0; i < stages.size(); ++i) {
            CAPTURE(i);
            const auto expected = [&](Phase phase) {
              return expand(stages[i].module, stages[i].layers, phase,
                            size_for(work, stages[i].module), context_of(stages[i], 2));
            };
            CHECK((out.backward[i] == expected(Phase::backward).collectives));
            CHECK((out.split[i] == expected(Phase::backward_input).collectives));
            CHECK((out.products[i] == expected_products(expected(Phase::backward))));
          }
          RecomputeOutcome& first = kept[transport.rank().value];
          if (recompute == Recompute::none) first = out;
          for (std::size_t i = 0; i < out.gradients.size(); ++i)
            CHECK(torch::equal(out.gradients[i], first.gradients[i]));
        });
      }
    }
  }

  TEST_CASE(
      "more recomputation saves less, and recomputed activations are freed after their block") {
    // One sample, so that nothing is padded; small tensors (scales of norms, angles) are within 3
    // %.
    Module module = tiny_language();
    module.layers = 4;
    module.hidden = 64;
    module.heads = 4;
    module.kv_heads = 1;
    module.head_dim = 16;
    module.ffn = 96;
    const TestWork work = make_work({{{}, 400, 1}}, torch::kFloat32, 1);
    const Tensor x = torch::randn({400, 64});
    const LayerRange blocks{1, 5};
    const auto held = [&](Recompute recompute, LayerRange range) {
      ChunkOptions options;
      options.recompute = recompute;
      options.recomputed = range;
      return measure(module, blocks, options, x, work.input);
    };
    const auto context = [](Recompute recompute, LayerRange range) {
      ChunkContext of;
      of.recompute = recompute;
      of.recomputed = range;
      return of;
    };
    const Held none = held(Recompute::none, kAllLayers),
               selective = held(Recompute::selective, kAllLayers),
               full = held(Recompute::full, kAllLayers),
               half = held(Recompute::full, LayerRange{2, 4});
    CHECK(full.tape < half.tape);
    CHECK(half.tape < selective.tape);
    CHECK(selective.tape < none.tape);
    // The saved activations of one block at a time, of four.
    CHECK(full.most < none.most + (none.tape - full.tape) / 2);
    const auto predicted = [&](Recompute recompute) {
      return tape_bytes(module, blocks, work.language, context(recompute, kAllLayers)).value;
    };
    CHECK(predicted(Recompute::full) < predicted(Recompute::selective));
    CHECK(predicted(Recompute::selective) < predicted(Recompute::none));
  }
}
