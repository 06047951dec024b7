#include "shared/hardware/shipped_certainty.h"

#include <cmath>

#include "shared/enum_names.h"
#include "shared/hardware/hardware.h"
#include "shared/statistics.h"

namespace polyphony {
namespace {

// Error of GEMM efficiency: the standard deviation, around the fit, of the mean errors of families
// (model, device, framework) of published measurements. 16 families of A100: 3.4 %; 6 of H100: 2.9
// %; 2 of B200: 2.7 %; 4 of GB200, whose recomputation is assumed: 29 %, half of which is
// attributed to the framework.
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

// Error of attention efficiency. A100: two sources give 0.40 and 0.5. Others: the difference
// between two generations of kernels, assumed.
double attention_error(FittedOn fitted) { return fitted == FittedOn::a100 ? 0.11 : 0.2; }

// Ranges of sizes in the fitted measurements: GEMMs of a block and of the head on one rank,
// messages between pipeline stages, tensor- and data-parallel groups. Own count of
// scenarios/published. H100's measurements have no pipeline.
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

// Residual errors as scripts/fit_profiles prints them. It fits them to the errors of measurements
// that were held out of a fit: scales of Student's t for the logarithm of the time ratio.
constexpr Residuals kResiduals{.known = 0.0541, .foreign = 0.0755, .borrowed = 0.2338};
constexpr double kGrouped = 0.2734;  // error of grouped_efficiency (expert GEMMs)
constexpr double kLayout = 0.0578, kTensor = 0.0462;
constexpr int kFreedom = 5;

// Stacks whose measurements are in a fit (scripts/fit_profiles).
constexpr const char* kFittedStacks[] = {"megatron-2021", "megatron-2022",   "megatron-deepspeed",
                                         "megatron-core", "megatron-bridge", "fsdp"};

// The device whose measurements were fitted. A device must have the same peaks to be calibrated.
const char* fitted_device(FittedOn fitted) {
  constexpr auto kDevices = names_of<FittedOn>("A100-80", "H100", "B200", "GB200", "");
  return kDevices[fitted];
}

}  // namespace

double residual_on(Footing footing, const Residuals& residuals) {
  switch (footing) {
    case Footing::stated:
    case Footing::known:
      return residuals.known;
    case Footing::foreign:
      return residuals.foreign;
    case Footing::borrowed:
      return residuals.borrowed;
    case Footing::foreign_borrowed:
      return std::hypot(residuals.foreign, residuals.borrowed);
  }
  return residuals.known;
}

double own_residual(Footing footing, const Residuals& residuals) {
  const bool foreign = footing == Footing::foreign || footing == Footing::foreign_borrowed;
  return foreign ? residuals.foreign : residuals.known;
}

const Residuals& shipped_residuals() { return kResiduals; }

Footing footing_of(const Device& device, FittedOn fitted, const std::string& stack) {
  const ShippedDevice* of_rows = find_device(fitted_device(fitted));
  const bool known_device = of_rows != nullptr && device.bf16 == of_rows->device.bf16 &&
                            device.fp8 == of_rows->device.fp8 &&
                            device.fp32 == of_rows->device.fp32;
  bool known_stack = false;
  for (const char* name : kFittedStacks) known_stack = known_stack || stack == name;
  if (known_device) return known_stack ? Footing::known : Footing::foreign;
  return known_stack ? Footing::borrowed : Footing::foreign_borrowed;
}

// Sources of the errors. Memory: 0.8 (aiconfigurator) compared with 0.91 and 0.67 (SimuMax).
// NVLink: 0.74 (SimuMax) compared with 0.65 (Calculon). Fabric: one source. Times of the host and
// of messages are assumed, and so are their errors. Framework: assumed; the fitted traffic varies
// more than this between four stacks, and less within one.
//
// If the fit to held-out measurements is allowed to change one of these errors at a time, none
// changes by more than a factor of two.
Certainty shipped_certainty(FittedOn fitted, Footing footing) {
  Certainty certainty;
  certainty.source =
      "residual, experts, layout_error and tensor_error: published measurements held out of the "
      "fit; GEMMs: published measurements; attention, memory, NVLink: difference between two "
      "sources; fabric, latencies, overheads: assumed";
  certainty.errors = {{{"gemm_efficiency", gemm_error(fitted)}},
                      {{"grouped_efficiency", kGrouped}},
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
  certainty.residual = residual_on(footing, kResiduals);
  certainty.layout_error = kLayout;
  certainty.tensor_error = kTensor;
  certainty.freedom = kFreedom;
  certainty.footing = footing;
  certainty.fitted = fitted_ranges(fitted);
  return certainty;
}

void state_certainty(HardwareProfile& profile, FittedOn fitted) {
  if (fitted == FittedOn::nothing) return;
  profile.certainty =
      shipped_certainty(fitted, footing_of(profile.device, fitted, profile.stack.name));
  const double deviation = std::hypot(*profile.certainty.residual, gemm_error(fitted));
  profile.step_error = std::expm1(central(0.9, kFreedom) * deviation);
}

void state_certainty(HardwareProfile& profile) {
  for (const ShippedDevice& shipped : shipped_devices())
    if (default_profile(shipped.device.name) == profile.name)
      state_certainty(profile, shipped.fitted);
}

}  // namespace polyphony
