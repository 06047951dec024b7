// Training on devices that run asynchronously to the host, as GPUs do: the results match the
// reference's, and host waits are counted.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>

#include "exec/attention_calls/cudnn_attention.h"
#include "exec/autograd/in_order.h"
#include "tests/exec/device_double/attention_kernels.h"
#include "tests/exec/fused/operation.h"
#include "tests/exec/parity/parity.h"

namespace polyphony::exec::testing {

namespace {

// Host waits of a step: one for the loss, the norm and whether all values are finite; and one event
// for each routing of tokens to experts, because the host needs the numbers of rows.
std::int64_t waits_due(const QueuedCounts& counts, const Case& c) {
  const std::vector<Module> modules = make_scenario(c).model.modules;
  const bool routes = std::any_of(modules.begin(), modules.end(),
                                  [](const Module& module) { return module.experts > 0; });
  const auto events = counts.waits.find("event");
  return routes && events != counts.waits.end() ? std::max<std::int64_t>(1, events->second) : 1;
}

void check_all(const std::vector<Case>& cases, std::int64_t longest_delay_us = 0,
               std::uint64_t seed = 0) {
  for (const Case& c : cases) {
    INFO(c.name);
    delay_kernels(longest_delay_us, seed++);
    const Outcome outcome = run_queued(c);
    delay_kernels(0, 0);
    CHECK(complaint(c, outcome) == "");
    for (const QueuedCounts& counts : outcome.counts) {
      std::string text;
      for (const auto& [what, count] : counts.waits)
        text += what + " " + std::to_string(count) + " ";
      INFO(text);
      CHECK(counts.host_waits() == waits_due(counts, c));
    }
  }
}

// Sums into floating-point tables of a queued device by ids, and those of them in a fixed order.
std::atomic<int> table_sums{0}, ordered_sums{0};

std::unique_ptr<at::ObserverContext> note_table_sum(const at::RecordFunction& call) {
  if (std::string(call.name()) != "aten::index_add_") return {};
  const at::Tensor& table = call.inputs()[0].toTensor();
  if (!table.is_privateuseone() || !table.is_floating_point()) return {};
  ++table_sums;
  ordered_sums += at::globalContext().deterministicAlgorithms();
  return {};
}

}  // namespace

TEST_SUITE("queued device") {
  TEST_CASE("layouts compute the reference's step asynchronously; the host waits once per step") {
    const std::vector<Case> cases = parity_cases();
    CHECK(cases.size() > 90);
    const Preferred flash(AttentionKernel::flash);  // as bf16 has it
    const FormsFor fused(kernels::Forms::fused);    // and our kernels, as on GPUs
    check_all(sampled(2, cases));
  }
  TEST_CASE(
      "planned and searched steps, offloaded activations and late kernels match the reference") {
    check_all(sampled(8, planned_cases()), 50, 1);
    check_all(sampled(8, searched_cases()), 20, 2);
    check_all(sampled(4, offload_cases()), 20, 3);
  }
  TEST_CASE("gradients of embeddings and positions are summed in one order if requested") {
    const Case c = parity_cases().front();
    for (const bool keeps : {true, false}) {
      CAPTURE(keeps);
      table_sums = ordered_sums = 0;
      keep_order(keeps);
      const auto handle =
          at::addGlobalCallback(at::RecordFunctionCallback(note_table_sum).needsInputs(true));
      check_all({c});
      at::removeCallback(handle);
      keep_order(false);
      CHECK(table_sums > 0);
      CHECK(ordered_sums == (keeps ? table_sums.load() : 0));
    }
  }
  TEST_CASE("single precision and published models match the reference") {
    check_all(single_precision_cases());
    check_all(sampled(4, published_cases()));
  }
  // Layouts whose kernels are chosen as on a GPU of compute capability 9.0, in fp64: cuDNN where a
  // call's rectangles have one shape, else flash.
  TEST_CASE("every third layout matches the reference with cuDNN's attention kernels") {
    const Preferred cudnn(AttentionKernel::cudnn);
    const FormsFor fused(kernels::Forms::fused);
    const std::vector<Case> cases = sampled(3, parity_cases());
    int with_cudnn = 0;
    for (const Case& c : cases) {
      forget_cudnn_plans();
      queued::take_cudnn_calls();
      check_all({c}, 20, 7);
      const queued::CudnnCalls calls = queued::take_cudnn_calls();
      with_cudnn += calls.forward > 0 && calls.backward > 0;
    }
    MESSAGE(with_cudnn << " of " << cases.size() << " layouts have calls for cuDNN");
    CHECK(with_cudnn >= 10);
  }
  // Every mask with every partition and method of context parallelism, windows, sinks and latent
  // heads. All of them with each kernel: "everything" below.
  TEST_CASE("every eighth mask matches the reference, a quarter of them with each kernel") {
    const std::vector<Case> cases = mask_cases();
    CHECK(cases.size() == 174);
    for (std::size_t i = 0; i < cases.size(); i += 8) {
      const Preferred kernel(static_cast<AttentionKernel>(i / 8 % 4));
      forget_cudnn_plans();
      check_all({cases[i]});
    }
  }
  // Each seed has another layout (of those with few ranks) and other delays. Eight seeds in CI;
  // POLYPHONY_SEEDS gives the number in scripts/nightly.
  TEST_CASE("randomly late kernels change nothing") {
    std::vector<Case> cheap;
    for (const std::vector<Case>& cases : {parity_cases(), planned_cases(), searched_cases()})
      for (const Case& c : cases)
        if (world_size(c.layout) <= 4) cheap.push_back(c);
    const std::uint64_t seeds = seeds_asked(8);
    const FormsFor fused(kernels::Forms::fused);
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      CAPTURE(seed);
      // 7919 is prime, so that consecutive seeds are spread over all layouts
      check_all({cheap[seed * 7919 % cheap.size()]}, 10 << seed % 6, seed);
    }
    MESSAGE(seeds << " seeds over " << cheap.size() << " layouts");
  }
  TEST_CASE("random layouts and models, with late kernels, compute the reference's step") {
    check_all(random_cases(1000000, seeds_asked(5)), 20, 6);
  }
  // Takes twenty minutes; run by scripts/nightly
  TEST_CASE("everything, with late kernels" * doctest::skip()) {
    for (const std::vector<Case>& cases :
         {parity_cases(), planned_cases(), searched_cases(), offload_cases(), published_cases(),
          parity_matrix().cases})
      check_all(cases, 20, 4);
    for (const AttentionKernel kernel : {AttentionKernel::cudnn, AttentionKernel::flash,
                                         AttentionKernel::efficient, AttentionKernel::plain}) {
      const Preferred preferred(kernel);
      check_all(mask_cases(), 20, 5);
    }
  }
}

}  // namespace polyphony::exec::testing
