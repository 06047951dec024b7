#include "shared/hardware/shipped_certainty.h"

#include <cmath>

#include "shared/hardware/hardware.h"
#include "shared/statistics.h"

namespace polyphony {
namespace {

// Residual errors as scripts/fit_profiles prints them. It fits them to the errors of measurements
// that were held out of a fit: scales of Student's t for the logarithm of the time ratio.
constexpr Residuals kResiduals{.known = 0.0541, .foreign = 0.0732, .borrowed = 0.2338};
constexpr double kGrouped = 0.2734;  // error of grouped_efficiency (expert GEMMs)
constexpr double kLayout = 0.0578, kTensor = 0.0462;
constexpr int kFreedom = 5;

// Stacks whose measurements are in a fit (scripts/fit_profiles).
constexpr const char* kFittedStacks[] = {"megatron-2021", "megatron-2022",   "megatron-deepspeed",
                                         "megatron-core", "megatron-bridge", "fsdp"};

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

Footing footing_of(const Device& device, const Fit& fit, const std::string& stack) {
  if (fit.device.empty()) return fit.calibrated ? Footing::foreign : Footing::foreign_borrowed;
  const ShippedDevice* of_rows = find_device(fit.device);
  const bool known_device =
      fit.calibrated && of_rows != nullptr && device.bf16 == of_rows->device.bf16 &&
      device.fp8 == of_rows->device.fp8 && device.fp32 == of_rows->device.fp32;
  bool known_stack = false;
  for (const char* name : kFittedStacks) known_stack = known_stack || stack == name;
  if (known_device) return known_stack ? Footing::known : Footing::foreign;
  return known_stack ? Footing::borrowed : Footing::foreign_borrowed;
}

// Sources of the errors that are the same for all fits (the files of shared/hardware/fits have the
// others). Memory: 0.8 (aiconfigurator) compared with 0.91 and 0.67 (SimuMax). NVLink: 0.74
// (SimuMax) compared with 0.65 (Calculon). Fabric: one source. Times of the host and of messages
// are assumed, and so are their errors. Framework: assumed; the fitted traffic varies more than
// this between four stacks, and less within one.
//
// If the fit to held-out measurements is allowed to change one of these errors at a time, none
// changes by more than a factor of two.
Certainty shipped_certainty(const Fit& fit, Footing footing) {
  Certainty certainty;
  certainty.source =
      "residual, experts, layout_error and tensor_error: published measurements held out of the "
      "fit; GEMMs: published measurements; attention, memory, NVLink: difference between two "
      "sources; fabric, latencies, overheads: assumed";
  certainty.errors = {{{"gemm_efficiency", fit.gemm_error}},
                      {{"grouped_efficiency", kGrouped}},
                      {{"attention_efficiency", fit.attention_error}},
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
  certainty.fitted = fit.fitted;
  return certainty;
}

void state_certainty(HardwareProfile& profile, const Fit& fit) {
  profile.certainty = shipped_certainty(fit, footing_of(profile.device, fit, profile.stack.name));
  const double deviation = std::hypot(*profile.certainty.residual, fit.gemm_error);
  profile.step_error = std::expm1(central(0.9, kFreedom) * deviation);
}

void state_certainty(HardwareProfile& profile) {
  for (const ShippedDevice& shipped : shipped_devices())
    if (shipped.fit && default_profile(shipped.device.name) == profile.name)
      state_certainty(profile, *shipped.fit);
}

}  // namespace polyphony
