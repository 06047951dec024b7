// Sums over the kernels of one layer, for comparison with counts by hand.
//   fp32, one rank. In a pass over n values, each operand read and each result written counts n.
#pragma once

#include <doctest/doctest.h>

#include <ostream>

#include "shared/chunk/expand.h"
#include "shared/kernels/kernel_form.h"

namespace polyphony::test {

// Values: bytes divided by 4.
struct Counts {
  double flops = 0;         // of GEMMs
  std::int64_t moved = 0;   // values read and written by GEMMs
  double attention = 0;     // FLOPs
  std::int64_t kept = 0;    // values of attention
  std::int64_t passed = 0;  // values read and written by all other kernels
  int launches = 0;         // of all other kernels
  bool operator==(const Counts&) const = default;
};
inline std::ostream& operator<<(std::ostream& out, const Counts& c) {
  return out << "{" << c.flops << ", " << c.moved << ", " << c.attention << ", " << c.kept << ", "
             << c.passed << ", " << c.launches << "}";
}

inline Counts summed(const Expansion& expansion) {
  Counts sum;
  for (const Kernel& kernel : expansion.kernels) {
    const std::int64_t values = kernel.bytes.value / 4;
    REQUIRE(values * 4 == kernel.bytes.value);
    switch (kernel.kind) {
      case KernelKind::gemm:
        sum.flops += kernel.flops.value;
        sum.moved += values;
        break;
      case KernelKind::attention:
        sum.attention += kernel.flops.value;
        sum.kept += values;
        break;
      case KernelKind::elementwise:
      case KernelKind::embedding:
      case KernelKind::loss:
        sum.passed += values;
        sum.launches += kernel.launches;
        break;
    }
  }
  return sum;
}

inline LayerRange only(int layer) {
  return {static_cast<std::uint16_t>(layer), static_cast<std::uint16_t>(layer + 1)};
}
inline Counts counts(const Module& module, int layer, Phase phase, const WorkSize& size,
                     const ChunkContext& context = {}) {
  return summed(expand(module, only(layer), phase, size, context));
}
inline Counts own_counts(const Module& module, int layer, Phase phase, const WorkSize& size,
                         const ChunkContext& context = {}) {
  return summed(expand_own(module, only(layer), phase, size, context));
}

// H 8, two heads of 4 and one key/value head, F 16, V 32.
inline Module small_language() {
  Module m;
  m.name = "language";
  m.kind = ModuleKind::language;
  m.layers = 2;
  m.hidden = 8;
  m.heads = 2;
  m.kv_heads = 1;
  m.head_dim = 4;
  m.ffn = 16;
  m.gated = true;
  m.vocab = 32;
  return m;
}
// 10 tokens of two samples, 4 and 6: 10 + 21 pairs; 7 are text, 3 have a label.
inline constexpr WorkSize kTen{
    .tokens = 10, .pairs = 31, .text_tokens = 7, .loss_tokens = 3, .sequences = 2, .samples = 2};

// H 8, two heads of 4, F 12; patches of 2 × 2 pixels in 3 channels.
inline Module small_vision() {
  Module m;
  m.name = "vision";
  m.kind = ModuleKind::vision;
  m.layers = 1;
  m.hidden = 8;
  m.heads = m.kv_heads = 2;
  m.head_dim = 4;
  m.ffn = 12;
  m.attention_bias = m.mlp_bias = true;
  m.norm = Norm::layer;
  m.image_size = 8;
  m.patch = 2;
  return m;
}
// Two images of 4 patches.
inline constexpr WorkSize kImages{.tokens = 8, .pairs = 32, .sequences = 2};

}  // namespace polyphony::test
