// Hardware profiles as JSON text. Quantities are strings with units, efficiencies plain numbers,
// corrections nested by layer and phase:
//   {"profile": 1, "name": "my-node", "software": "torch 2.11", "source": "profiled 2026-11-21",
//    "device": {"name": "H100", "fp32": "67TFLOPS", "bf16": "989TFLOPS", "memory_rate": "3350GBps",
//    "memory": "80GiB"}, "gemm_efficiency": 0.71, "gemm_half_size": 256, "dispatch": "3us", ...,
//    "collectives": "nccl",
//    "stack": {"name": "fsdp", "traffic": 0.7, "host": "8us", "matrix": "fp8"},
//    "corrections": {"decoder_block": {"forward": 1.04, "backward": 0.98}},
//    "certainty": {…: shared/hardware/certainty_json.h}}
// An absent key keeps the default of shared/hardware/hardware.h; an absent peak means that the
// device does not support the format. A profile that is written and read again is equal to the
// original.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "shared/hardware/hardware.h"

namespace polyphony {

// Upper limits of link efficiencies. Other efficiencies are shares of a peak and at most 1, but
// those of links may be higher: an accelerator's link rates come from data sheets, and measured
// rates count bytes that protocols need not send; cpu-core's rates are assumed, and may be four
// times too low.
inline constexpr double kMostOfLink = 1.2, kMostOfAssumedLink = 4;
// Upper limit of attention's backward efficiency over its forward one: a larger ratio is an error
// of measurement. Assumed; on CPUs it is about 0.9.
inline constexpr double kMostAttentionBackward = 2;

// Set a number of the profile or of its stack by its JSON key, times in seconds; used by fits.
// Return false if there is no such key.
bool set_number(HardwareProfile& profile, const std::string& key, double value);
bool set_number(SoftwareStack& stack, const std::string& key, double value);

// Returns the keys that a fit or an entry of Certainty::errors can name, with the paths of stack
// and corrections: "gemm_efficiency", "stack.host", "corrections.decoder_block.forward".
const std::vector<std::string>& parameter_keys();
// Multiplies one of these parameters. A correction that the profile lacks counts as 1. Fails a
// CHECK or throws for an unknown key.
void scale_parameter(HardwareProfile& profile, const std::string& key, double factor);

// Parses a profile, or returns the roofline profile of a user's device file
// (shared/hardware/device_file_json.h). Throws InputError with the file and a JSON pointer.
HardwareProfile parse_profile(const std::string& text, const std::string& file);
// Returns the JSON of a profile, as a value and as text.
nlohmann::ordered_json json_value(const HardwareProfile& profile);
std::string to_json(const HardwareProfile& profile);
// Returns to_json() of a measured profile that will be written to `file`. Throws InputError if
// parse_profile() would not accept the text.
std::string readable_json(const HardwareProfile& profile, const std::string& file);

}  // namespace polyphony
