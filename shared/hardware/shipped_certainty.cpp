#include "shared/hardware/shipped_certainty.h"

namespace polyphony {
namespace {

// Of matrix products: deviation of the mean misses of the families (model, device, framework) of
// published rows around the fit: 16 families of A100 3.4 %, 6 of H100 2.9 %, 2 of B200 2.7 %; 4 of
// GB200, whose recomputation is assumed, 29 %, of which the framework is taken to have half.
double gemm_error(FittedOn fitted) {
  switch (fitted) {
    case FittedOn::a100:
      return 0.034;
    case FittedOn::h100:
      return 0.029;
    case FittedOn::b200:
      return 0.027;
    case FittedOn::gb200:
      return 0.15;
    case FittedOn::nothing:
      return 0;
  }
  return 0;
}

// Attention: A100 0.40 to 0.5 in two sources; others between two generations of kernels, assumed.
double attention_error(FittedOn fitted) { return fitted == FittedOn::a100 ? 0.11 : 0.2; }

// Of the rows that the fits saw: matrix products of a block and of the head on one rank, boundaries
// between pipeline stages, tensor- and data-parallel groups. Own count of scenarios/published.
// H100's rows have no pipeline.
FittedRanges fitted_ranges(FittedOn fitted) {
  constexpr double kMiB = 1 << 20;
  switch (fitted) {
    case FittedOn::a100:
      return {FittedRange{645, 23823}, FittedRange{2 * kMiB, 768 * kMiB}, {}, FittedRange{2, 128}};
    case FittedOn::h100:
      return {FittedRange{4260, 23823}, {}, {}, FittedRange{8, 512}};
    case FittedOn::b200:
      return {FittedRange{3182, 32532}, FittedRange{40 * kMiB, 128 * kMiB}, {}, FittedRange{2, 8}};
    case FittedOn::gb200:
      return {FittedRange{2954, 25820}, FittedRange{32 * kMiB, 64 * kMiB}, {}, FittedRange{2, 64}};
    case FittedOn::nothing:
      return {};
  }
  return {};
}

}  // namespace

// Memory: 0.8 (aiconfigurator) against 0.91 and 0.67 (SimuMax). NVLink: 0.74 (SimuMax) against 0.65
// (Calculon). Fabric: one source. Times of the host and of messages: assumed, and so are their
// errors. Framework: the fitted traffic of four stacks spreads by more, within one less; assumed.
Certainty shipped_certainty(FittedOn fitted) {
  Certainty certainty;
  certainty.source =
      "matrix products and layout_error: published rows; attention, memory, NVLink: two sources "
      "apart; fabric, latencies, overheads: assumed";
  certainty.errors = {{{"gemm_efficiency", gemm_error(fitted)}},
                      {{"attention_efficiency", attention_error(fitted)}},
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
  certainty.fitted = fitted_ranges(fitted);
  return certainty;
}

}  // namespace polyphony
