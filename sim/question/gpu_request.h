// How many accelerators of which kind a question is about, as people write it:
//   64x8xH100    64 nodes of 8
//   512xH100     512, in the nodes that the device ships in (8 each)
//   H100         one
//   ?xH100       how many are needed, in whole nodes (GpuRequest::least)
// Names are not case-sensitive and may have a vendor, a memory size and a form: "NVIDIA H100 80GB",
// "h100-sxm", "A100-40GB", "MI300X". "*" and "×" stand for "x".
#pragma once

#include <string>
#include <vector>

namespace polyphony::sim {

struct GpuRequest {
  std::string device;  // name of a shipped device, or path of a device file
  std::string node;    // name of a shipped node; empty: none has so many accelerators
  int nodes = 1, per_node = 1;
  bool least = false;                // nodes: unknown
  std::vector<std::string> assumed;  // what the text left open
};

// Throws InputError that names `option`, says what is wrong and lists devices.
GpuRequest parse_gpus(const std::string& text, const std::string& option = "--gpus");

}  // namespace polyphony::sim
