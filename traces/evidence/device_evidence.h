// What the profile of a rank's GPU says about each group of kernels (shared/cost/kernel_groups.h):
// times that a fit compares with predicted ones. Any program's profile will do: kernels are known
// by their names and the operators that launched them (traces/kineto/kernel_class.h).
//
//   gemm                 GEMMs and convolutions
//   grouped_gemm         kernels that are called grouped, or were launched by a grouped operator.
//                        Experts that run as single GEMMs are in `gemm`
//   attention_backward   attention whose kernel or operator says so (bwd, bprop, backward, …)
//   memory_bound         all other computation, copies within the device and fills
//
// Times are sums of the durations of kernels, also of those that run side by side; a step's are
// those of the kernels that its host launched.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "shared/cost/kernel_groups.h"
#include "traces/kineto/device_trace.h"

namespace polyphony::traces {

struct MeasuredGroup {
  Seconds time{};                               // of a step, median over the steps
  double noise = 0;                             // relative deviation of the steps' mean
  std::int64_t kernels = 0;                     // in all steps
  std::map<std::string, Seconds> by_name = {};  // the time of a step, mean over the steps
};
struct MeasuredProduct {
  MatrixProduct product;
  double count = 0;  // per step
  Seconds time{};    // of one, mean
};
struct DeviceEvidence {
  std::string file;
  std::optional<int> rank, world;
  std::string device;
  std::size_t steps = 0;
  bool separated = false;  // whether the trace states its steps
  std::array<MeasuredGroup, kKernelGroups> groups = {};
  const MeasuredGroup& of(KernelGroup group) const { return groups[place(group)]; }
  // The GEMMs of `gemm` whose shapes were recorded (record_shapes=True), and their share of the
  // group's time.
  std::vector<MeasuredProduct> products = {};
  double known_products = 0;
  Seconds unknown{};  // kernels that no table has, of a step; in no group
  // From the start of one step's first kernel to that of the next, median. Of a single step: its
  // annotation on the host or the span of its kernels, whichever is longer.
  Seconds step{};
};
// Returns the evidence of a trace. Without annotations of steps, the whole trace counts as one.
// Throws InputError if it is of a rank without a device, or has no GEMMs.
DeviceEvidence device_evidence(const DeviceTrace& trace);

}  // namespace polyphony::traces
