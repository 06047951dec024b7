// The groups of a rank's kernels are all of its computation.
#include "shared/cost/kernel_groups.h"

#include <doctest/doctest.h>

#include "shared/cost/compute_time.h"
#include "shared/hardware/devices.h"
#include "shared/lower/lower.h"
#include "shared/scenario/typical_batch.h"
#include "shared/split/planned_layout.h"
#include "tests/shared/support/scenario_files.h"

namespace polyphony {
namespace {

constexpr const char* kDense = R"("ffn": 4096, "gated": false)";

// Without what the groups leave out: overheads, gaps, the host's launches, communication.
HardwareProfile only_kernels(const std::string& stack) {
  HardwareProfile profile = *find_profile(default_profile("H100"));
  if (!stack.empty()) profile.stack = *find_stack(stack);
  profile.dispatch = profile.op_overhead = profile.optimizer_overhead = Seconds(0);
  profile.stack.host = profile.stack.routing = Seconds(0);
  return profile;
}

Program program_of(const Scenario& scenario, const HardwareProfile& profile) {
  const PlannedLayout planned = plan_layout(borrow_inputs(scenario, profile), *scenario.layout);
  return lower(scenario, with_blocks(planned.layout, planned.plan), planned.plan,
               planned.inputs->typical(), StepKind::train, profile.stack);
}

Scenario scenario_of(const std::string& model, const std::string& layout) {
  return read_scenario(R"({"polyphony": 1, "model": {"language": {"hidden": 1024, "heads": 8,
    "layers": 4, "vocab": 1000, )" +
                           model + R"(}}, "cluster": {"node": {"device": "H100", "ranks": 2}},
    "data": {"source": "synthetic", "text": {"tokens": 512}, "sequence": 512, "global_batch": 8},
    "layout": {"placement": "homogeneous", "microbatches": 4, "language": )" +
                           layout + R"(}, "training": {"precision": "bf16"}})",
                       "s.json", test::file_text);
}

}  // namespace

TEST_CASE("groups of kernels add up to the compute and update ops of a rank") {
  for (const char* model : {kDense, R"("experts": 4, "experts_per_token": 2, "expert_ffn": 512)"})
    for (const char* layout : {R"({"pp": 2})", R"({"tp": 1, "recompute": "full"})",
                               R"({"tp": 1, "recompute": "selective"})"})
      for (const char* stack : {"", "megatron-core", "megatron-2021", "hf-eager"}) {
        CAPTURE(std::string(model) + layout + stack);
        const HardwareProfile profile = only_kernels(stack);
        const Scenario scenario = scenario_of(model, layout);
        const Program program = program_of(scenario, profile);
        for (std::uint32_t rank = 0; rank < 2; ++rank) {
          const GroupTimes groups = group_times(program, Rank(rank), profile);
          Seconds sum{}, ops{};
          for (const Seconds time : groups.of) sum += time;
          const Range range = program.ops_of(Rank(rank));
          for (std::uint32_t i = range.begin; i < range.end; ++i) {
            const auto& what = program.ops[i].what;
            if (std::holds_alternative<Compute>(what) || std::holds_alternative<Update>(what))
              ops += compute_time(program, OpId(i), scenario.cluster, profile);
          }
          CHECK(sum.count() == doctest::Approx(ops.count()).epsilon(1e-9));
          CHECK((groups.of[place(KernelGroup::grouped_gemm)] > Seconds(0)) == (model != kDense));
        }
      }
}

// By hand: 2 · 8 · 512 tokens · (4 layers · (4 · 1024² + 2 · 1024 · 4096) + 1024 · 1000), three
// times: forward, input and weight gradients.
TEST_CASE("FLOPs of the GEMMs of a step") {
  const Scenario scenario = scenario_of(kDense, R"({"tp": 1})");
  const HardwareProfile profile = only_kernels("");
  const GroupTimes groups = group_times(program_of(scenario, profile), Rank(0), profile);
  const double by_hand =
      3 * 2.0 * 4 * 512 * (4 * (4 * 1024.0 * 1024 + 2 * 1024.0 * 4096) + 1024.0 * 1000);
  CHECK(groups.gemm_flops.value == doctest::Approx(by_hand));
  CHECK(groups.grouped_flops.value == 0);
}

}  // namespace polyphony
