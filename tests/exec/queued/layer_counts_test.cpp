// What an op queues on a GPU beside what expand() says of it. Its collectives are compared wherever the parity set
// runs (RunnerOptions::check_collectives); here its kernels.
#include <doctest/doctest.h>

#include "exec/runner/runner.h"
#include "exec/runner/step_data.h"
#include "shared/plan/lower.h"
#include "shared/program/expand_op.h"
#include "tests/exec/parity/parity.h"
#include "tests/exec/queued/attention_kernels.h"
#include "tests/exec/queued/device_world.h"

namespace polyphony::exec::testing {

namespace {

// Of one rank's ops of a phase.
struct Counted {
  std::int64_t ops = 0, products = 0, kernels = 0, launches = 0;  // `launches`: as expand() says
};
using Table = std::map<std::string, Counted>;

Table step(const Case& c, Transport& transport, torch::Device device) {
  const Scenario scenario = make_scenario(c);
  const auto dataset = make_dataset(c, scenario);
  const Program program =
      lower(scenario, c.layout, make_plan(scenario, c.layout), dataset->batch(0));
  Table table;
  RunnerOptions options{.device = device};
  options.watch = [&](OpId id, bool starts) {
    const auto* compute = std::get_if<Compute>(&program.ops[id.value].what);
    if (compute == nullptr) return;
    const QueuedCounts counts = take_counts(device);
    if (starts) return;  // what came before
    std::int64_t products = 0, launches = 0;
    double flops = 0;
    const Expansion expansion = expand(program, id);
    for (const Kernel& kernel : expansion.kernels) {
      launches += kernel.launches;
      if (kernel.kind != KernelKind::gemm) continue;
      products += kernel.launches;
      flops += kernel.flops.value;
    }
    INFO(describe(program, id));
    CHECK(counts.products == products);
    CHECK(counts.product_flops == doctest::Approx(flops).epsilon(1e-12));
    Counted& row = table[name(compute->phase)];
    ++row.ops;
    row.products += counts.products;
    row.kernels += counts.kernels;
    row.launches += launches + static_cast<std::int64_t>(expansion.collectives.size());
  };
  Runner runner(transport, scenario, program, options);
  const auto inputs =
      pack_inputs(program, transport.rank(), *dataset, {scenario.data.seed, 0}, device);
  runner.train_step(
      program, [&](WorkId work) -> const WorkInput& { return inputs.at(work); }, 1e-3);
  return table;
}

}  // namespace

TEST_SUITE("queued device") {
  TEST_CASE("products of an op are those of its expansion, in number and FLOPs") {
    std::vector<Case> cases = parity_cases();
    const std::vector<Case> generated = parity_matrix().cases;
    cases.insert(cases.end(), generated.begin(), generated.end());
    for (const char* layout : {"homogeneous TP1 PP1 DP1, gpipe x1", "tp2", "sp",
                               "tp2 sp in 3 pieces", "cp2 contiguous", "fully sharded"}) {
      const Case& c = named(cases, layout);
      INFO(c.name);
      const Preferred flash(AttentionKernel::flash);  // as bf16 has it
      Table table;
      on_devices(world_size(c.layout), false, [&](Transport& transport, torch::Device device) {
        const Table mine = step(c, transport, device);
        if (transport.rank() == Rank(0)) table = mine;
      });
      for (const auto& [phase, row] : table)
        MESSAGE(c.name << ", " << phase << ", an op: " << row.products / row.ops << " products, "
                       << row.kernels / row.ops << " kernels and collectives, expanded "
                       << row.launches / row.ops);
    }
  }
}

}  // namespace polyphony::exec::testing
