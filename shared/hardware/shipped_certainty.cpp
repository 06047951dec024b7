#include "shared/hardware/shipped_certainty.h"

namespace polyphony {
namespace {

// Of matrix products: deviation of the mean misses of the families (model, device, framework) of
// published rows around the fit: 16 families of A100 3.4 %, 6 of H100 2.9 %, 2 of B200 2.7 %; 4 of
// GB200, whose recomputation is assumed, 29 %, of which the framework is taken to have half.
double gemm_error(const Device& device) {
  if (device.name == "GB200") return 0.15;
  if (device.name == "B200") return 0.027;
  return device.name.starts_with("A") ? 0.034 : 0.029;
}

// Attention: A100 0.40 to 0.5 in two sources; others between two generations of kernels, assumed.
double attention_error(const Device& device) { return device.name.starts_with("A") ? 0.11 : 0.2; }

// Of the rows that the fits saw: matrix products of a block and of the head on one rank, boundaries
// between pipeline stages, tensor- and data-parallel groups. Own count of scenarios/published.
// H100's rows have no pipeline.
FittedRanges fitted_ranges(const Device& device) {
  constexpr double kMiB = 1 << 20;
  FittedRanges ranges;
  if (device.name == "GB200") {
    ranges = {FittedRange{2954, 25820}, FittedRange{32 * kMiB, 64 * kMiB}, {}, FittedRange{2, 64}};
  } else if (device.name == "B200") {
    ranges = {FittedRange{3182, 32532}, FittedRange{40 * kMiB, 128 * kMiB}, {}, FittedRange{2, 8}};
  } else if (device.name.starts_with("A")) {
    ranges = {FittedRange{645, 23823}, FittedRange{2 * kMiB, 768 * kMiB}, {}, FittedRange{2, 128}};
  } else {
    ranges = {FittedRange{4260, 23823}, {}, {}, FittedRange{8, 512}};
  }
  return ranges;
}

}  // namespace

// Memory: 0.8 (aiconfigurator) against 0.91 and 0.67 (SimuMax). NVLink: 0.74 (SimuMax) against 0.65
// (Calculon). Fabric: one source. Times of the host and of messages: assumed, and so are their
// errors. Framework: the fitted traffic of four stacks spreads by more, within one less; assumed.
Certainty shipped_certainty(const Device& device) {
  Certainty certainty;
  certainty.source =
      "matrix products and layout_error: published rows; attention, memory, NVLink: two sources "
      "apart; fabric, latencies, overheads: assumed";
  certainty.errors = {{{"gemm_efficiency", gemm_error(device)}},
                      {{"attention_efficiency", attention_error(device)}},
                      {{"early_attention_efficiency", 0.2}},
                      {{"memory_efficiency", 0.14}},
                      {{"optimizer_bytes_efficiency", 0.14}},
                      {{"collective_efficiency", 0.13}},
                      {{"message_efficiency", 0.13}},
                      {{"fabric_efficiency", 0.15}},
                      {{"dispatch", 0.5}},
                      {{"op_overhead", 0.5}},
                      {{"message_latency", 0.5}},
                      {{"optimizer_overhead", 0.5}},
                      {{"stack.traffic", 0.2}},
                      {{"stack.host", 0.3}}};
  certainty.layout_error = 0.022;
  certainty.fitted = fitted_ranges(device);
  return certainty;
}

}  // namespace polyphony
