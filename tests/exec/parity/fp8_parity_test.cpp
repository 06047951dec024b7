// Training with FP8 GEMMs in layouts of every kind. Ranks cast the operands that they have, so
// that layouts differ in what they round: each must come as close to the reference, which does not
// round at all, as one rank does. Everything that is not a number is checked as in other parity
// tests: copies of parameters, messages, memory, order.
#include "tests/exec/device_double/attention_kernels.h"
#include "tests/exec/fused/operation.h"
#include "tests/exec/parity/parity_layouts.h"

#include <doctest/doctest.h>  // after LibTorch, which has a CHECK of its own

namespace polyphony::exec::testing {

namespace {

Case in_fp8(Case c, Fp8Scaling scaling) {
  c.fp8 = scaling;
  c.variant = [before = c.variant](Model& model) {
    if (before) before(model);
    for (Module& module : model.modules) {
      if (module.kind == ModuleKind::vision) module.hidden = module.head_dim = 16, module.ffn = 64;
      if (module.kind == ModuleKind::projector) module.projector_in = 4 * 16;
      if (module.kind == ModuleKind::language) module.head_dim = 8, module.ffn = 64;
    }
  };
  c.name += std::string(", fp8 ") + name(scaling);
  return c;
}

}  // namespace

TEST_SUITE("fp8") {
  TEST_CASE("layouts of every kind come as close to the reference as one rank") {
    for (const Fp8Scaling scaling : {Fp8Scaling::tensorwise, Fp8Scaling::rowwise}) {
      const Outcome one = run_in_process(in_fp8(homogeneous({}, k1f1b, 2), scaling));
      CHECK(one.fault.empty());
      MESSAGE(std::string(name(scaling)), ", one rank: loss ", one.loss, ", gradients ",
              one.all_gradients);
      double worst = 0, worst_loss = 0;
      std::vector<Case> cases = model_layouts(false, false);
      cases.push_back(homogeneous({2, 2, 2}, k1f1b, 2));
      cases.push_back(colocated({1, 1, 4}, {2, 2, 1}, k1f1b, 4, 2));
      cases.push_back(apart({1, 1, 2}, {2, 2, 1}, k1f1b, 4));
      for (const Case& plain : cases) {
        const Case c = in_fp8(plain, scaling);
        INFO(c.name);
        const Outcome outcome = run_in_process(c);
        CHECK(outcome.fault == "");
        CHECK(outcome.memory < 0.02);
        // Rounding errors are random, and each layout rounds others: half as much again is generous
        // for the norm over all of them, and a sum that is missing is far above.
        CHECK(outcome.all_gradients < 1.5 * one.all_gradients);
        CHECK(outcome.all_gradients > one.all_gradients / 2);
        worst = std::max(worst, outcome.all_gradients);
        worst_loss = std::max(worst_loss, outcome.loss);
      }
      CHECK(cases.size() == 10);
      MESSAGE(cases.size(), " layouts: loss at most ", worst_loss, ", gradients ", worst);
    }
  }

  // The device's double of FP8 GEMMs refuses what a GPU's refuses; our kernels make the operands.
  TEST_CASE("a device computes the steps of a CPU in FP8, and its host waits once per step") {
    const Preferred flash(AttentionKernel::flash);
    const FormsFor fused(kernels::Forms::fused);
    for (const Fp8Scaling scaling : {Fp8Scaling::tensorwise, Fp8Scaling::rowwise})
      for (const Case& plain :
           {homogeneous({}, k1f1b, 2), homogeneous({2, 2, 1}, ScheduleKind::zero_bubble, 4)}) {
        const Case c = in_fp8(plain, scaling);
        INFO(c.name);
        const Outcome here = run_in_process(c), there = run_queued(c);
        CHECK(there.fault == "");
        // Weight gradients by row are bf16 before they are added.
        const double bar = scaling == Fp8Scaling::rowwise ? 0x1p-8 : 1e-9;
        CHECK(std::abs(there.all_gradients - here.all_gradients) < bar);
        CHECK(std::abs(there.loss - here.loss) < 1e-9);
        for (const QueuedCounts& counts : there.counts) CHECK(counts.host_waits() == 1);
      }
  }
}

}  // namespace polyphony::exec::testing
