// A hardware profile: how much of a device's and its links' peak real kernels reach, and what it
// was fitted on.
//   kernel time   max(flops / (peak · efficiency(kind, shape)), bytes / (memory_rate · memory_efficiency))
//                 + dispatch per launch; the sum of the two for products on a core (products_wait)
//   efficiency    of gemm, m, n, k: gemm_efficiency · s / (s + half_size), s = (m·n·k)^(1/3): small
//                 products reach less of the peak. Products of experts, of one shape side by
//                 side, reach grouped_efficiency of what one alone does, an expert's rows t as if
//                 they were t + 35: tiles that it does not fill
//                 of attention, K keys a query in the mean, heads of width w: attention_efficiency ·
//                 (w / 128)^(1/3) · K / (K + attention_half_keys), neither where that is 0; backward
//                 attention_backward of it, and twice the half
//   transfers     collectives and messages: latency + bytes / (link rate · link_efficiency);
//                 message_efficiency and collective_efficiency inside a node, fabric_efficiency between,
//                 host_efficiency to and from the host's memory
//   corrections   measured ÷ modelled time by (layer kind, phase), from calibration; 1 where absent
//   layer_times   measured times of modules' layers, in place of their kernels'
//   stack         what the software adds (shared/hardware/software.h)
//   nccl          collectives by protocol (shared/cost/collectives.h); else collective_latency per ring hop
//   step_error    stated relative error of a step time predicted with the profile; candidates closer
//                 than it are tied
//   certainty     errors of single parameters, what was seen, jitter
// Profiles in JSON: shared/hardware/hardware_json.h.
// Sources: the longer of arithmetic and memory, the roofline model (Williams, Waterman and
// Patterson, CACM 52(4), 2009); efficiency by shape, own form, fitted (shared/hardware/devices.cpp).
#pragma once

#include <map>
#include <string>
#include <utility>

#include "shared/chunk/expand.h"
#include "shared/hardware/certainty.h"
#include "shared/hardware/cluster.h"
#include "shared/hardware/measured_layers.h"
#include "shared/hardware/software.h"

namespace polyphony {

struct HardwareProfile {
  std::string name;      // "h100-roofline"
  std::string software;  // the stack it holds for
  std::string source;    // where its numbers come from
  Device device;
  double gemm_efficiency = 0.7;
  double gemm_half_size = 0;                // elements; 0: flat
  double grouped_efficiency = 1;            // of gemm_efficiency
  double attention_efficiency = 0.5;        // forward, of long rows
  double early_attention_efficiency = 0.3;  // the same, of kernels of the generation before
  double attention_backward = 1;
  double attention_half_keys = 0;  // 0: flat
  double memory_efficiency = 0.8;
  Seconds dispatch{};               // per kernel launch
  Seconds op_overhead{};            // per compute op (runner, autograd graph)
  Seconds message_latency{};        // point to point, both ends
  double message_efficiency = 0.8;  // of the link rate
  Seconds collective_latency{};     // per ring hop, as seen by all
  double collective_efficiency = 0.8;
  double in_switch_efficiency =
      0;  // of what all-reduces in the switch could gain; 0: there are none
  double fabric_efficiency =
      0.9;  // of the fabric link rate between nodes, messages and collectives alike
  double host_efficiency = 0.876;  // of the host link, copies of activations
  Seconds host_latency{};          // per such copy
  Seconds optimizer_overhead{};    // per update op
  double optimizer_bytes_efficiency =
      0.8;  // of the memory rate, over parameters + gradients + moments read and written
  double step_error = 0.25;
  bool nccl = false;
  // Experts: dispatched without telling the host (HybridEP, on NVLink domains).
  bool counts_on_device = false;
  // A product's operands come from memory before its arithmetic, not beside it: a processor's core.
  bool products_wait = false;
  SoftwareStack stack;
  std::map<std::pair<LayerKind, Phase>, double> corrections;
  MeasuredModules layer_times;
  Certainty certainty;
  bool operator==(const HardwareProfile&) const = default;
};

// Seconds of one kernel on the device, without corrections.
Seconds kernel_time(const HardwareProfile& profile, const Kernel& kernel, NumberFormat precision);
// Seconds that the host takes to launch it.
Seconds launch_time(const HardwareProfile& profile, const Kernel& kernel);

}  // namespace polyphony
