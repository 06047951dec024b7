// What a training framework adds to the device's own physics: what it fuses, how it computes
// attention, what it sums gradients in, what its host costs. Part of a hardware profile, which
// holds for one stack; the defaults are this project's executor, whose kernels shared/expand.h
// counts.
//   memory-bound kernel   bytes · traffic, launches · launches
//   attention, eager      scores of whole squares are written and read kScorePasses times
//   attention, early      kernels of before each GPU's own generation of flash kernels, at their
//   own
//                         efficiency (shared/hardware.h); eager products too
//   compute op            the longer of its kernels and of its launches · host (the host runs
//   ahead) gradients             reduced in gradient_bytes an element; of their reduction `overlap`
//   is
//                         hidden behind the backward that makes them last, as far as that lasts
//   matrix                the blocks' weight products in this format; each operand is cast first
// Does not model: the host waiting for the device, kernels of different streams side by side.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shared/cluster.h"
#include "shared/units.h"

namespace polyphony {

// Forward, over the scores in the compute format: written by the product (1), masked softmax (2),
// dropout (2, its mask 1/2), read by the second product (1). The backward moves twice as much. Own
// count of Megatron-LM's unfused path with its fused softmax.
inline constexpr double kScorePasses = 6.5;

struct SoftwareStack {
  std::string name = "polyphony";
  double traffic = 1;
  double launches = 1;
  Seconds host{};
  bool eager_attention = false;
  bool early_attention = false;
  double gradient_bytes = 0;  // 0: as the executor (shared/held_sizes.h)
  double overlap = 0;
  std::optional<NumberFormat> matrix;
  bool operator==(const SoftwareStack&) const = default;
};

// Shipped stacks, each fitted as scripts/fit_profiles says.
const std::vector<SoftwareStack>& shipped_stacks();
const SoftwareStack* find_stack(const std::string& name);  // null: no such name

}  // namespace polyphony
