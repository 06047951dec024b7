// A hardware profile: which share of the peak rates of a device and of its links real kernels and
// transfers reach, and which measurements that rests on. JSON: shared/hardware/hardware_json.h.
//
//   kernel time   max(flops / (peak · efficiency(kind, shape)), bytes / (memory_rate ·
//                 memory_efficiency)) + dispatch per launch; for GEMMs on a CPU core the sum of the
//                 two (products_wait)
//   efficiency    GEMM of shape m, n, k: gemm_efficiency · s / (s + gemm_half_size), with
//                 s = (m·n·k)^(1/3), as small GEMMs reach less of the peak. Grouped GEMMs of
//                 experts (one shape, many experts) reach grouped_efficiency times that of a single
//                 GEMM, and an expert with t rows takes as long as with t + 35: its last tile is
//                 not full. Attention with a mean of K keys per query and heads of width w:
//                 attention_efficiency · (w / 128)^(1/3) · K / (K + attention_half_keys), without
//                 the last two factors if attention_half_keys is 0. Backward: attention_backward
//                 times that, with twice attention_half_keys
//   transfers     collectives and messages: latency + bytes / (link rate · efficiency), where the
//                 efficiency is message_efficiency or collective_efficiency inside a node,
//                 fabric_efficiency between nodes, host_efficiency to and from host memory
//   corrections   measured ÷ modeled time by (layer kind, phase), from calibration; 1 if absent
//   layer_times   measured times of modules' layers, which replace those of their kernels
//   stack         what the software framework adds (shared/hardware/software.h)
//   collectives   the library whose protocols collectives follow (shared/cost/collectives.h)
//   step_error    half of the 90 % interval of a step time predicted with the profile, relative.
//                 Decides ties only for candidates that were not compared with the best one
//   certainty     errors of single parameters, fitted ranges, jitter (shared/hardware/certainty.h)
//
// Sources: the larger of compute time and memory time is the roofline model (Williams, Waterman and
// Patterson, CACM 52(4), 2009); efficiency by shape: own form, fitted
// (shared/hardware/fits).
#pragma once

#include <map>
#include <string>
#include <utility>

#include "shared/chunk/expand.h"
#include "shared/enum_names.h"
#include "shared/hardware/certainty.h"
#include "shared/hardware/cluster.h"
#include "shared/hardware/measured_layers.h"
#include "shared/hardware/software.h"

namespace polyphony {

// The library that runs collectives. Its constants: shared/cost/collective_algorithms.cpp.
//   gloo  on CPU cores: a ring, of which every hop takes HardwareProfile::collective_latency
//   nccl  NVIDIA's
//   rccl  AMD's
enum class CollectiveLibrary : std::uint8_t { gloo, nccl, rccl };
constexpr auto names(CollectiveLibrary) {
  return names_of<CollectiveLibrary>("gloo", "nccl", "rccl");
}

struct HardwareProfile {
  std::string name;      // "h100-roofline"
  std::string software;  // the software it is valid for
  std::string source;    // where its numbers come from
  Device device;
  double gemm_efficiency = 0.7;
  double gemm_half_size = 0;                // elements; 0: the same efficiency at all sizes
  double grouped_efficiency = 1;            // factor on gemm_efficiency
  double attention_efficiency = 0.5;        // forward, for long sequences
  double early_attention_efficiency = 0.3;  // the same for kernels of the previous generation
  double attention_backward = 1;
  double attention_half_keys = 0;  // 0: the same efficiency at all lengths
  double memory_efficiency = 0.8;
  Seconds dispatch{};               // per kernel launch
  Seconds op_overhead{};            // per compute op (runner, autograd graph)
  Seconds message_latency{};        // point to point, both ends together
  double message_efficiency = 0.8;  // of the link rate
  Seconds collective_latency{};     // per ring hop, as every rank sees it
  double collective_efficiency = 0.8;
  double in_switch_efficiency =
      0;  // share of the possible gain from all-reduces in the switch; 0: the switch does none
  double fabric_efficiency =
      0.9;  // of the fabric link rate between nodes, for messages and collectives
  double host_efficiency = 0.876;  // of the host link rate, for copies of activations
  Seconds host_latency{};          // per such copy
  Seconds optimizer_overhead{};    // per update op
  double optimizer_bytes_efficiency =
      0.8;  // of the memory rate, over parameters + gradients + moments read and written
  double step_error = 0.25;
  CollectiveLibrary collectives = CollectiveLibrary::gloo;
  // Expert dispatch keeps its counts on the device, so the host need not wait for them (HybridEP,
  // on NVLink domains).
  bool counts_on_device = false;
  // A GEMM loads its operands before its arithmetic instead of overlapping the two: a CPU core.
  bool products_wait = false;
  SoftwareStack stack;
  std::map<std::pair<LayerKind, Phase>, double> corrections;
  MeasuredModules layer_times;
  Certainty certainty;
  bool operator==(const HardwareProfile&) const = default;
};

// Returns the time of one kernel on the device, without corrections. Fails a CHECK if the device
// has no peak for the precision.
Seconds kernel_time(const HardwareProfile& profile, const Kernel& kernel, NumberFormat precision);
// Returns whether a stack with narrow GEMMs (SoftwareStack::matrix) computes this kernel in their
// format: a block's GEMM without a side below kNarrowSide.
bool is_in_narrow_format(const Kernel& kernel);
// Returns the time that the host takes to launch the kernel.
Seconds launch_time(const HardwareProfile& profile, const Kernel& kernel);

}  // namespace polyphony
