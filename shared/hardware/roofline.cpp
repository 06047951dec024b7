#include "shared/hardware/roofline.h"

#include "shared/hardware/shipped_certainty.h"

namespace polyphony {
namespace {

// Sources of what is not fitted to step times. Kernels: shared/hardware/fits.
//
// NVLink: collectives 0.74 (SimuMax, B200 all-reduce), 0.65 (Calculon); fabric 0.9 (Calculon).
// xGMI: a message 0.75 of its link (rocm.blogs.amd.com, "Understanding RCCL Bandwidth and xGMI
// Performance on AMD Instinct MI300X": 48 of 64 GB/s), rings over all links of eight MI300Xs 0.70
// (stas00/ml-engineering, network, "Peer-to-peer bandwidth": 312.9 of 448 GB/s; the Azure AI
// benchmarking guide, ND MI300X v5, has 316.8).
//
// Copies to and from the host: 55.2 of PCIe's 63.0 GB/s in each direction with pinned memory
// (scenarios/measured, an H100 and an H200; other devices are assumed to be the same), 10 us each,
// like messages.
//
// Messages over NVLink have the efficiency of collectives, and 10 us each (aiconfigurator);
// collectives follow the library's protocols (shared/cost/collectives.h).
//
// Assumed: 20 us for the runner and autograd per compute op, 100 us for the launches of an
// optimizer step.
HardwareProfile fitted_profile(const ShippedDevice& shipped, const Fit& fit) {
  HardwareProfile profile;
  profile.name = default_profile(shipped.device.name);
  const bool amd = shipped.collectives == CollectiveLibrary::rccl;
  profile.software = std::string("kernels of this project; ") +
                     (amd ? "AMD libraries of 2024 to 2025" : "NVIDIA libraries of 2020 to 2026");
  profile.source =
      std::string("GEMMs and Triton's attention: fitted to ") + fit.rows +
      "; peaks: " + (shipped.file.empty() ? "data sheets" : shipped.file) + "; " +
      (amd ? "xGMI: AMD's ROCm blog, ml-engineering; message latency: aiconfigurator; hops: RCCL "
             "tuning.cc"
           : "NVLink: SimuMax 1.2; memory and message latency: aiconfigurator; hops: NCCL "
             "tuning.cc") +
      "; fabric: Calculon; op and optimizer overhead: assumed; not fitted on your machine";
  profile.device = shipped.device;
  profile.stack = *find_stack("polyphony");
  profile.gemm_efficiency = fit.gemm_efficiency;
  profile.gemm_half_size = fit.gemm_half_size;
  profile.grouped_efficiency = fit.grouped_efficiency;
  profile.attention_efficiency = fit.attention_efficiency;
  profile.early_attention_efficiency = fit.early_attention_efficiency;
  profile.attention_backward = fit.attention_backward;
  profile.attention_half_keys = fit.attention_half_keys;
  profile.memory_efficiency = fit.memory_efficiency;
  profile.dispatch = Seconds(3e-6);
  profile.op_overhead = Seconds(20e-6);
  profile.message_latency = Seconds(10e-6);
  profile.message_efficiency = amd ? 0.75 : 0.74;
  profile.collective_latency = Seconds(2.5e-6);
  profile.collective_efficiency = amd ? 0.70 : 0.74;
  profile.collectives = shipped.collectives;
  profile.counts_on_device = shipped.domain > 0;
  profile.fabric_efficiency = 0.9;
  profile.host_latency = Seconds(10e-6);
  profile.optimizer_overhead = Seconds(100e-6);
  profile.optimizer_bytes_efficiency = fit.optimizer_bytes_efficiency;
  state_certainty(profile, fit);
  return profile;
}

// Measured on two-core machines with LibTorch 2.11 and Gloo: an all-reduce of 4 KiB takes 0.1 to
// 0.4 ms on 2 ranks (2 hops). The rest is assumed until the machine is profiled.
HardwareProfile assumed_profile(const ShippedDevice& shipped) {
  HardwareProfile profile;
  profile.products_wait = true;
  profile.name = default_profile(shipped.device.name);
  profile.software = "LibTorch 2.11 on one x86 core, Gloo";
  profile.source = "assumed, deliberately slow: profile this machine for real predictions";
  if (!shipped.file.empty())
    profile.source = "assumed, deliberately slow, as for cpu-core: " + shipped.file +
                     " has no fit; name one, or profile the machine";
  profile.device = shipped.device;
  profile.gemm_efficiency = 0.6;
  profile.gemm_half_size = 16;
  profile.attention_efficiency = 0.25;
  profile.memory_efficiency = 0.8;
  profile.dispatch = Seconds(5e-6);
  profile.op_overhead = Seconds(100e-6);
  profile.message_latency = Seconds(200e-6);
  profile.message_efficiency = 0.5;
  profile.collective_latency = Seconds(100e-6);
  profile.collective_efficiency = 0.4;
  profile.fabric_efficiency = 0.5;
  profile.host_efficiency = 0.8;  // the same as for memory
  profile.optimizer_overhead = Seconds(1e-3);
  profile.optimizer_bytes_efficiency = 0.5;
  profile.step_error = 0.5;
  return profile;
}

}  // namespace

HardwareProfile roofline_profile(const ShippedDevice& device) {
  return device.fit ? fitted_profile(device, *device.fit) : assumed_profile(device);
}

}  // namespace polyphony
