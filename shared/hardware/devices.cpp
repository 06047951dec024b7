#include "shared/hardware/devices.h"

#include <cctype>

#include "shared/error.h"
#include "shared/hardware/fits.h"
#include "shared/hardware/shipped_certainty.h"

namespace polyphony {
namespace {

using namespace literals;

// Sources of the rows, named in each:
//   [torchtitan]  pytorch/torchtitan, torchtitan/tools/utils.py get_peak_flops (NVIDIA data sheets,
//                 without sparsity)
//   [aic]         ai-dynamo/aiconfigurator, systems/*.yaml (peaks, memory rates, NVLink, NIC, one
//                 direction)
//   [a100]        glennklockwood.com, page on the A100 (data sheet)
//   [a40]         NVIDIA A40 data sheet; PCIe 4.0 x16 31.5 GB/s (NVLink joins pairs only, so it is
//                 not counted); one 200 Gb/s NIC for 4 accelerators as in Cornstarch (arXiv
//                 2503.11367), §7
//   [l40s]        NVIDIA L40S data sheet: without sparsity, PCIe 4.0 x16; NIC as for the A40,
//                 assumed
//   [prof]        citsjtu2020/LLM-Prof, hardware_spec.md (H800, H20, B200); DIP's clusters: H800
//                 with NVLink 200 GB/s and 200 Gb/s a GPU
//   [fp32]        data sheets, vector units (tf32 must be requested by name)
//
// Links to host memory, one direction: PCI Express 4.0 and 5.0 base specifications, 16 lanes of 16
// and 32 GT/s, 128 of 130 bits: 31.5 and 63.0 GB/s; Grace: NVLink-C2C's 450 GB/s for two
// accelerators.
//
// Shares of the host memory rate, an eighth of two sockets of eight channels: DDR4-3200 (DGX A100
// data sheet; A40 and L40S assumed to be the same), DDR5-4800 (DGX H100; other Hoppers assumed to
// be the same), DDR5-5600 (DGX B200); half of Grace's 512 GB/s. A CPU core's copy reads and writes
// its own memory.
//
// Latencies of links: NVLink 0.94 us, ASTRA-sim's HGX-H100 file; fabric 5 us, NCCL
// src/graph/tuning.cc, tree hop over a network; PCIe 2 us and shared memory 20 us: assumed.
constexpr Seconds kNvlinkLatency{0.94e-6};
constexpr Seconds kPcieLatency{2e-6};
constexpr Seconds kFabricLatency{5e-6};
constexpr Seconds kSharedMemoryLatency{20e-6};
constexpr FlopsPerSecond kNotSupported{};

// Share of the design power that a device draws while its rank waits or communicates: kernels poll
// and the memory is on. Assumed; devices without a process draw a tenth.
constexpr double kIdleShare = 0.3;

// The links of one accelerator.
struct Host {
  Link link;
  BytesPerSecond memory;
};

ShippedDevice device(const char* name, FlopsPerSecond fp32, FlopsPerSecond bf16, FlopsPerSecond fp8,
                     BytesPerSecond memory_rate, Bytes memory, int processors, Link node_link,
                     Link fabric_link, const Host& host, double watts, FittedOn fitted,
                     const char* source) {
  return {{name, fp32, bf16, fp8, memory_rate, memory, processors},
          node_link,
          fabric_link,
          fitted,
          source,
          Watts(watts),
          Watts(watts) * kIdleShare,
          0,
          host.link,
          host.memory};
}

// Watts: thermal design power of a device (NVIDIA data sheets).
std::vector<ShippedDevice> make_devices() {
  // Memory is what a program can allocate: the data sheet's number in GiB (HBM and GDDR are sold in
  // powers of two; B200 shows 178.4, GB200 185.0) minus the driver's part and the process's
  // context. An H100 gave 78.50 of its 80 GiB, an H200 139.25 (scenarios/measured/README.md);
  // others are assumed to be similar. NCCL's buffers are not subtracted.
  constexpr Bytes kDriver(std::int64_t{1536} << 20), kContext(std::int64_t{526} << 20);
  const Link pcie{BytesPerSecond(31.5e9), kPcieLatency};
  const Link nvlink3{300_GBps, kNvlinkLatency}, nvlink4{450_GBps, kNvlinkLatency},
      nvlink5{900_GBps, kNvlinkLatency};
  const Link nic50{50_Gbps, kFabricLatency}, nic200{200_Gbps, kFabricLatency};
  const Link nic400{400_Gbps, kFabricLatency}, nic800{800_Gbps, kFabricLatency};
  const Link pcie5{BytesPerSecond(63e9), kPcieLatency};
  const Host ddr4{pcie, BytesPerSecond(51.2e9)}, ddr5{pcie5, BytesPerSecond(76.8e9)},
      ddr5_5600{pcie5, BytesPerSecond(89.6e9)}, grace{{225_GBps, kNvlinkLatency}, 256_GBps};
  const FlopsPerSecond fp32_a40(37.4e12), fp32_a100(19.5e12), bf16_a40(149.7e12);
  ShippedDevice gb200 =
      device("GB200", 80_TFLOPs, 2500_TFLOPs, 5000_TFLOPs, 8000_GBps, 185_GiB - kContext, 148,
             nvlink5, nic800, grace, 1200, FittedOn::gb200, "[torchtitan] [aic] [fp32]");
  gb200.domain = 72;  // NVL72: 18 trays of 4
  return {
      device("A40", fp32_a40, bf16_a40, kNotSupported, 696_GBps, 48_GiB - kDriver, 84, pcie, nic50,
             ddr4, 300, FittedOn::a100, "[a40] [fp32]"),
      device("L40S", FlopsPerSecond(91.6e12), 362_TFLOPs, 733_TFLOPs, 864_GBps, 48_GiB - kDriver,
             142, pcie, nic50, ddr4, 350, FittedOn::a100, "[l40s]"),
      device("A100-40", fp32_a100, 312_TFLOPs, kNotSupported, 1555_GBps, 40_GiB - kDriver, 108,
             nvlink3, nic200, ddr4, 400, FittedOn::a100, "[torchtitan] [a100] [fp32]"),
      device("A100-80", fp32_a100, 312_TFLOPs, kNotSupported, 2039_GBps, 80_GiB - kDriver, 108,
             nvlink3, nic200, ddr4, 400, FittedOn::a100, "[torchtitan] [aic] [fp32]"),
      device("H100", 67_TFLOPs, 989_TFLOPs, 1978_TFLOPs, 3350_GBps, 80_GiB - kDriver, 132, nvlink4,
             nic400, ddr5, 700, FittedOn::h100, "[torchtitan] [aic] [fp32]"),
      device("H800", 67_TFLOPs, 989_TFLOPs, 1978_TFLOPs, 3350_GBps, 80_GiB - kDriver, 132,
             {200_GBps, kNvlinkLatency}, nic200, ddr5, 700, FittedOn::h100, "[prof] [fp32]"),
      device("H200", 67_TFLOPs, 989_TFLOPs, 1978_TFLOPs, 4800_GBps, Bytes(149'518'548'992), 132,
             nvlink4, nic400, ddr5, 700, FittedOn::h100, "[torchtitan] [aic] [fp32]"),
      device("H20", 44_TFLOPs, 148_TFLOPs, 296_TFLOPs, 4000_GBps, 96_GiB - kDriver, 78, nvlink4,
             nic200, ddr5, 400, FittedOn::h100, "[prof] [fp32]"),
      device("B200", 80_TFLOPs, 2250_TFLOPs, 4500_TFLOPs, 8000_GBps,
             Bytes(191'555'541'401) - kContext, 148, nvlink5, nic400, ddr5_5600, 1000,
             FittedOn::b200, "[torchtitan] [prof] [fp32]"),
      gb200,
      // One core of an unknown x86 machine: AVX2 with two fused multiply-adds of 8 lanes per cycle
      // at 2.5 GHz = 80 GFLOP/s; 8 GB/s as its share of the memory channels; processes communicate
      // through shared memory or the loopback device at 2 GB/s, machines at 10 Gb/s. Without bf16
      // instructions numbers are widened to fp32 and back: assumed to be half as fast.
      device("cpu-core", FlopsPerSecond(80e9), FlopsPerSecond(40e9), kNotSupported, 8_GBps, 4_GiB,
             1, {2_GBps, kSharedMemoryLatency}, {10_Gbps, Seconds(30e-6)},
             {{4_GBps, Seconds(0)}, 4_GBps}, 0, FittedOn::nothing, "assumed, deliberately slow"),
  };
}

std::string lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// Sources of what is not fitted to step times. Kernels: shared/hardware/fits.cpp.
//
// NVLink: collectives 0.74 (SimuMax, B200 all-reduce), 0.65 (Calculon); fabric 0.9 (Calculon).
// Copies to and from the host: 55.2 of PCIe's 63.0 GB/s in each direction with pinned memory
// (scenarios/measured, an H100 and an H200; other devices are assumed to be the same), 10 us each,
// like messages.
//
// Messages have the efficiency of collectives, and 10 us each (aiconfigurator); collectives follow
// NCCL's protocols (shared/cost/collectives.h).
//
// Assumed: 20 us for the runner and autograd per compute op, 100 us for the launches of an
// optimizer step.
HardwareProfile gpu_profile(const ShippedDevice& shipped) {
  HardwareProfile profile;
  profile.name = default_profile(shipped.device.name);
  const Fit& fit = fit_of(shipped.fitted);
  profile.software = "kernels of this project; NVIDIA libraries of 2020 to 2026";
  profile.source =
      std::string("GEMMs and Triton's attention: fitted to ") + fit.rows +
      "; peaks: data sheets; NVLink: SimuMax 1.2; memory and message latency: aiconfigurator; "
      "hops: NCCL tuning.cc; fabric: Calculon; op and optimizer overhead: assumed; not fitted on "
      "your machine";
  profile.device = shipped.device;
  profile.stack = *find_stack("polyphony");
  profile.gemm_efficiency = fit.gemm_efficiency;
  profile.gemm_half_size = fit.gemm_half_size;
  profile.grouped_efficiency = fit.grouped_efficiency;
  profile.attention_efficiency = fit.attention_efficiency;
  profile.early_attention_efficiency = fit.early_attention_efficiency;
  profile.attention_backward = fit.attention_backward;
  profile.attention_half_keys = kAttentionHalfKeys;
  profile.memory_efficiency = fit.memory_efficiency;
  profile.dispatch = Seconds(3e-6);
  profile.op_overhead = Seconds(20e-6);
  profile.message_latency = Seconds(10e-6);
  profile.message_efficiency = 0.74;
  profile.collective_latency = Seconds(2.5e-6);
  profile.collective_efficiency = 0.74;
  profile.nccl = true;
  profile.counts_on_device = shipped.domain > 0;
  profile.fabric_efficiency = 0.9;
  profile.host_latency = Seconds(10e-6);
  profile.optimizer_overhead = Seconds(100e-6);
  profile.optimizer_bytes_efficiency = fit.optimizer_efficiency;
  // Two sites with the same A100 layout differ by 2 to 6 %, and measurements that were not fitted
  // have two to three times the mean error of those that were.
  profile.step_error = fit.step_error;
  state_certainty(profile, shipped.fitted);
  return profile;
}

// Measured on two-core machines with LibTorch 2.11 and Gloo: an all-reduce of 4 KiB takes 0.1 to
// 0.4 ms on 2 ranks (2 hops). The rest is assumed until the machine is profiled.
HardwareProfile cpu_profile(const Device& device) {
  HardwareProfile profile;
  profile.products_wait = true;
  profile.name = default_profile(device.name);
  profile.software = "LibTorch 2.11 on one x86 core, Gloo";
  profile.source = "assumed, deliberately slow: profile this machine for real predictions";
  profile.device = device;
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

std::vector<HardwareProfile> make_profiles() {
  std::vector<HardwareProfile> profiles;
  for (const ShippedDevice& shipped : shipped_devices()) {
    const bool gpu = shipped.fitted != FittedOn::nothing;
    profiles.push_back(gpu ? gpu_profile(shipped) : cpu_profile(shipped.device));
  }
  return profiles;
}

}  // namespace

const std::vector<ShippedDevice>& shipped_devices() {
  static const std::vector<ShippedDevice> devices = make_devices();
  return devices;
}

const ShippedDevice* find_device(const std::string& name) {
  for (const ShippedDevice& shipped : shipped_devices()) {
    if (lower_case(shipped.device.name) == lower_case(name)) return &shipped;
  }
  return nullptr;
}

std::vector<std::string> device_names() {
  std::vector<std::string> names;
  for (const ShippedDevice& shipped : shipped_devices()) names.push_back(shipped.device.name);
  return names;
}

int default_domain(const std::string& device, int ranks_per_node) {
  const ShippedDevice* shipped = find_device(device);
  if (shipped == nullptr || shipped->domain <= ranks_per_node) return 0;
  return shipped->domain % ranks_per_node == 0 ? shipped->domain : 0;
}

const std::vector<HardwareProfile>& shipped_profiles() {
  static const std::vector<HardwareProfile> profiles = make_profiles();
  return profiles;
}

const HardwareProfile* find_profile(const std::string& name) {
  for (const HardwareProfile& profile : shipped_profiles()) {
    if (profile.name == lower_case(name)) return &profile;
  }
  return nullptr;
}

std::vector<std::string> profile_names() {
  std::vector<std::string> names;
  for (const HardwareProfile& profile : shipped_profiles()) names.push_back(profile.name);
  return names;
}

bool is_profile_file(const std::string& name) {
  return name.find('/') != std::string::npos || name.ends_with(".json");
}

std::string default_profile(const std::string& device) { return lower_case(device) + "-roofline"; }

std::optional<HardwareProfile> shipped_profile(const Cluster& cluster) {
  const HardwareProfile* found = find_profile(cluster.profile);
  if (found == nullptr) return std::nullopt;
  HardwareProfile profile = *found;
  profile.device = cluster.device;
  return profile;
}

FlopsPerSecond peak(const Device& device, NumberFormat format) {
  const bool matrix_units = device.bf16 > device.fp32;
  switch (format) {
    case NumberFormat::fp64:
      return device.fp32 / 2.0;
    case NumberFormat::fp32:
      return device.fp32;
    case NumberFormat::tf32:
      return matrix_units ? device.bf16 / 2.0 : FlopsPerSecond();
    case NumberFormat::bf16:
    case NumberFormat::fp16:
      return device.bf16;
    case NumberFormat::fp8:
      return device.fp8;
    case NumberFormat::nvfp4:
      for (const char* blackwell : {"B200", "GB200"})
        if (device.name == blackwell) return device.fp8 * 2.0;
      return {};
  }
  return {};
}

}  // namespace polyphony
