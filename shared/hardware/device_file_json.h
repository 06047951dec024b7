// A device as a JSON file: one of shared/hardware/devices, or a user's own of the same form.
//   {"device": 1, "name": "H100", "fp32": "67TFLOPS", "bf16": "989TFLOPS", "fp8": "1978TFLOPS",
//    "memory_rate": "3350GBps", "memory": "78.5GiB", "processors": 132,
//    "link": "450GBps", "link_latency": "0.94e-6s", "nic": "400Gbps", "nic_latency": "5e-6s",
//    "host_link": "63GBps", "host_latency": "2us", "host_memory_share": "76.8GBps",
//    "busy_power": "700W", "idle_power": "210W", "nodes": {"hgx-h100": 8}, "fit": "h100",
//    "source": {"figures": "…", "memory": ["…", "…"]}}
// and, of accelerators that no switch joins or whose library is AMD's:
//   {…, "peer_link": "64GBps", "collectives": "rccl"}
// The keys mean the same as in a scenario's cluster. "fit" is the name of a shipped fit, or a fit
// (shared/hardware/fit_json.h); without it efficiencies are assumed, as for cpu-core. A user's
// device has a name of its own, and no named nodes.
#pragma once

#include <optional>
#include <string>

#include "shared/hardware/devices.h"
#include "shared/text/strict_json.h"

namespace polyphony {

// The form lives as long as the program.
const ObjectForm& device_file_form();

// Reads a shipped device's file.
ShippedDevice read_device_file(const std::string& text, const std::string& file);
// Reads a user's device file. Throws InputError with the file and a JSON pointer.
ShippedDevice read_own_device(const std::string& text, const std::string& file);
// The same where another document is allowed as well, a profile: then returns nothing.
std::optional<ShippedDevice> own_device_in(const std::string& text, const std::string& file);

}  // namespace polyphony
