// Hardware profiles as JSON text. Quantities are texts with units, efficiencies plain numbers,
// corrections by layer and phase:
//   {"profile": 1, "name": "my-node", "software": "torch 2.11", "source": "profiled 2026-11-21",
//    "device": {"name": "H100", "fp32": "67TFLOPS", "bf16": "989TFLOPS", "memory_rate": "3350GBps",
//    "memory": "80GiB"}, "gemm_efficiency": 0.71, "gemm_half_size": 256, "dispatch": "3us", ...,
//    "nccl": true, "stack": {"name": "fsdp", "traffic": 0.7, "host": "8us", "matrix": "fp8"},
//    "corrections": {"decoder_block": {"forward": 1.04, "backward": 0.98}},
//    "certainty": {…: shared/hardware/certainty_json.h}}
// An absent key keeps the default of shared/hardware/hardware.h; an absent peak means: the device does
// not support that format. Reading what was written gives the same value. Errors: InputError with
// file and JSON pointer.
#pragma once

#include <string>
#include <vector>

#include "shared/hardware/hardware.h"

namespace polyphony {

// Efficiencies are shares of a peak, at most 1. Of links they may be more: an accelerator's are data
// sheets', and measured bytes a second count what protocols save; cpu-core's are assumed, and may be
// understated fourfold.
inline constexpr double kMostOfLink = 1.2, kMostOfAssumedLink = 4;

// A number of the profile or of its stack by its key, times in seconds: what a fit actions. False: no
// such key.
bool set_number(HardwareProfile& profile, const std::string& key, double value);
bool set_number(SoftwareStack& stack, const std::string& key, double value);

// What a fit or an error can name, stack and corrections with their paths: "gemm_efficiency",
// "stack.host", "corrections.decoder_block.forward".
const std::vector<std::string>& parameter_keys();
// Multiplies one of them. A correction that the profile lacks is 1 before.
void scale_parameter(HardwareProfile& profile, const std::string& key, double factor);

HardwareProfile parse_profile(const std::string& text, const std::string& file);
std::string to_json(const HardwareProfile& profile);
// The same of one that was measured, for `file`: refused where its own reader would refuse it.
std::string readable_json(const HardwareProfile& profile, const std::string& file);

}  // namespace polyphony
