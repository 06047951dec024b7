// Makes the profile of a rank's GPU, in the format of PyTorch's profiler, as a hardware profile
// predicts it: every kernel of the rank's Program, one after another, with the names that
// frameworks' kernels have.
#pragma once

#include <string>
#include <vector>

#include "shared/chunk/expand_layer.h"
#include "shared/cost/kernel_groups.h"
#include "shared/cost/kernel_times.h"
#include "shared/program/expand_op.h"
#include "sim/evidence/quick_step.h"
#include "tests/traces/kineto/made.h"

namespace polyphony::tests {

class MadeProfile {
 public:
  // `shapes`: whether those of GEMMs are recorded.
  MadeProfile(const Program& program, Rank rank, const HardwareProfile& truth, bool shapes)
      : program_(program), rank_(rank), truth_(truth), shapes_(shapes) {
    truth_.dispatch = Seconds(0);
  }

  // Returns the text of a profile of `steps` steps of `step` seconds each.
  std::string text(int steps, Seconds step) {
    for (int s = 0; s < steps; ++s) {
      begin_ = at_ = 1e6 * step.count() * s;
      events_.push_back(traces::made::step(s, begin_, 1e6 * step.count()));
      add_step();
    }
    return traces::made::file(events_, traces::made::head(static_cast<int>(rank_.value),
                                                          static_cast<int>(program_.ranks)));
  }

 private:
  void add_step() {
    const Range ops = program_.ops_of(rank_);
    for (std::uint32_t i = ops.begin; i < ops.end; ++i)
      if (const auto* compute = std::get_if<Compute>(&program_.ops[i].what)) add(*compute);
    const GroupTimes all = group_times(program_, rank_, truth_);
    add("multi_tensor_apply_kernel<FusedAdam>", "", "",
        all.of[place(KernelGroup::optimizer)].count());
  }

  void add(const Compute& compute) {
    const Module& module = program_.model.modules[compute.module.value];
    const WorkSize& size = program_.size_of(compute.work, compute.module);
    const ChunkContext context = chunk_context(program_, compute);
    for (int layer = compute.layers.begin; layer < compute.layers.end; ++layer) {
      const Expansion inside =
          expand_layer(module, compute.layers, layer, compute.phase, size, context);
      for (std::size_t k = 0; k < inside.kernels.size(); ++k)
        if (const auto timed = timed_kernel(module, inside, k, compute.phase, context, truth_))
          add(*timed);
    }
  }

  void add(const TimedKernel& timed) {
    const Kernel& kernel = timed.kernel;
    switch (kernel.kind) {
      case KernelKind::gemm: {
        const std::string dims = "[[" + std::to_string(kernel.m) + ", " + std::to_string(kernel.k) +
                                 "], [" + std::to_string(kernel.k) + ", " +
                                 std::to_string(kernel.n) + "]]";
        for (int launch = 0; launch < kernel.launches; ++launch)
          add("nvjet_tst_192x192", "aten::mm", dims, timed.time.count() / kernel.launches);
        return;
      }
      case KernelKind::attention:
        return add(kernel.n > 1 ? "flash_bwd_kernel" : "flash_fwd_kernel", "", "",
                   timed.time.count());
      case KernelKind::elementwise:
      case KernelKind::embedding:
      case KernelKind::loss:
        return add("vectorized_elementwise_kernel", "", "", timed.time.count());
    }
  }

  void add(const std::string& name, const std::string& op, const std::string& dims,
           double seconds) {
    const double microseconds = 1e6 * seconds;
    // The host is far ahead: it launches everything at the begin of the step.
    const double launched = begin_ + 0.001 * (++correlation_ % 90'000);
    if (!op.empty() && shapes_)
      events_.push_back(
          traces::made::event("cpu_op", op, launched, 0.0009, R"("Input Dims": )" + dims));
    events_.push_back(traces::made::kernel(name, launched, at_, microseconds, 7, correlation_));
    at_ += microseconds;
  }

  const Program& program_;
  Rank rank_;
  HardwareProfile truth_;
  bool shapes_;
  std::vector<std::string> events_;
  double begin_ = 0, at_ = 0;
  int correlation_ = 0;
};

}  // namespace polyphony::tests
