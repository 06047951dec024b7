#include "sim/machines/nccl_topology.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <pugixml.hpp>
#include <set>
#include <vector>

#include "shared/error.h"
#include "shared/text/figure_text.h"

namespace polyphony::sim {
namespace {

constexpr int kDeepest = 64;
constexpr int kMostGpus = 4096;

// PCI devices (vendor, device) of the shipped accelerators. Source: the PCI ID database,
// github.com/pciutils/pciids.
struct PciDevice {
  int vendor, device;
  const char* name;
};
constexpr PciDevice kDevices[] = {
    {0x10de, 0x20b0, "A100-40"},      {0x10de, 0x20b2, "A100-80"},
    {0x10de, 0x20f3, "A800"},         {0x10de, 0x2235, "A40"},
    {0x10de, 0x2324, "H800"},         {0x10de, 0x2329, "H20"},
    {0x10de, 0x2330, "H100"},         {0x10de, 0x2335, "H200"},
    {0x10de, 0x2684, "RTX-4090"},     {0x10de, 0x26b9, "L40S"},
    {0x10de, 0x2901, "B200"},         {0x10de, 0x2941, "GB200"},
    {0x10de, 0x2b85, "RTX-5090"},     {0x10de, 0x2bb1, "RTX-PRO-6000"},
    {0x10de, 0x2bb5, "RTX-PRO-6000"}, {0x10de, 0x3182, "B300"},
    {0x10de, 0x31c2, "GB300"},        {0x10de, 0x31c3, "GB300"},
    {0x1002, 0x74a1, "MI300X"},       {0x1002, 0x74a5, "MI325X"},
    {0x1002, 0x75a3, "MI355X"}};

// Rate of one NVLink in one direction, GB/s, by compute capability. Source: NVIDIA's data sheets
// (V100, A100: 25; A40: 112.5 / 8; H100: 25; B200: 50).
double nvlink_rate(int compute_capability) {
  switch (compute_capability) {
    case 70:
    case 80:
    case 90:
      return 25;
    case 86:
      return 14.0625;
    case 100:
    case 103:
      return 50;
    default:
      return 0;
  }
}

// Classes of what an NVLink leads to (PCI class codes).
constexpr int kBridge = 0x068000, kCpu = 0x068001;

struct Gpu {
  std::string host, bus_id;
  int dev = 0, capability = 0;
  int vendor = 0, device = 0;
  double pcie = 0;  // GB/s; 0: unknown
  int links = 0;    // NVLinks, those to CPUs excluded
  bool switched = false, xgmi = false;
  std::vector<std::string> peers;  // bus ids that links lead to directly
};

// GB/s of a PCIe link, "32.0 GT/s PCIe" of 16 lanes, in one direction; 0: not understood. Source:
// PCI Express base specification: 8 of 10 bits up to 5 GT/s, 128 of 130 up to 32, 242 of 256 bytes
// at 64.
double pcie_rate(const char* speed, int width) {
  const double transfers = std::atof(speed);
  if (!(transfers > 0) || !(transfers <= 256) || width < 1 || width > 32) return 0;
  const double share = transfers <= 5 ? 0.8 : transfers <= 32 ? 128.0 / 130 : 242.0 / 256;
  return transfers * width / 8 * share;
}

int number_of(const pugi::xml_node& node, const char* attribute) {
  return static_cast<int>(
      std::clamp(std::strtol(node.attribute(attribute).value(), nullptr, 0), -1L, 1L << 30));
}

class Reader {
 public:
  explicit Reader(const std::string& file) : file_(file) {}

  NcclTopology read(const std::string& text) {
    pugi::xml_document document;
    const pugi::xml_parse_result parsed = document.load_buffer(text.data(), text.size());
    if (!parsed)
      fail("is not XML: " + std::string(parsed.description()) + " at byte " +
           std::to_string(parsed.offset));
    const pugi::xml_node system = document.child("system");
    if (!system) fail("has no <system>");
    for (const pugi::xml_node& cpu : system.children("cpu")) {
      host_ = cpu.attribute("host_hash").value();
      walk(cpu, 0, 0, cpu);
    }
    return finish();
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw InputError(file_, "", what,
                     "give what NCCL wrote where NCCL_TOPO_DUMP_FILE says, unchanged");
  }

  // `pcie`: of the way from the CPU to here; 0: nothing on it is known. `pci`: the nearest device.
  void walk(const pugi::xml_node& node, int depth, double pcie, const pugi::xml_node& pci) {
    if (depth > kDeepest) fail("is nested too deep");
    for (const pugi::xml_node& child : node.children()) {
      const std::string kind = child.name();
      if (kind == "gpu") {
        add_gpu(child, pci, pcie);
      } else if (kind == "net") {
        const double speed = child.attribute("speed").as_double();
        // NCCL takes an unknown rate as 10 Gb/s.
        nets_.push_back({host_, speed > 0 && speed < 1e9 ? speed : 10000, root_});
      } else if (kind == "pci") {
        if (depth == 0) ++root_;
        const double own = pcie_rate(child.attribute("link_speed").value(),
                                     child.attribute("link_width").as_int());
        walk(child, depth + 1, own <= 0 ? pcie : pcie <= 0 ? own : std::min(own, pcie), child);
      } else {
        walk(child, depth + 1, pcie, pci);
      }
    }
  }

  void add_gpu(const pugi::xml_node& node, const pugi::xml_node& pci, double pcie) {
    if (gpus_.size() >= kMostGpus) fail("has more than " + count_text(kMostGpus) + " GPUs");
    Gpu gpu;
    gpu.host = host_;
    gpu_roots_.insert(root_);
    gpu.bus_id = pci.attribute("busid").value();
    gpu.dev = number_of(node, "dev");
    gpu.capability = number_of(node, "sm");
    gpu.vendor = number_of(pci, "vendor");
    gpu.device = number_of(pci, "device");
    gpu.pcie = pcie;
    for (const pugi::xml_node& link : node.children()) {
      const std::string kind = link.name();
      if (kind == "xgmi") gpu.xgmi = true;
      if (kind != "nvlink" && kind != "xgmi") continue;
      const int target = number_of(link, "tclass"), count = number_of(link, "count");
      if (target == kCpu || count < 1 || count > 1024) continue;
      gpu.links += count;
      if (target == kBridge)
        gpu.switched = true;
      else
        gpu.peers.emplace_back(link.attribute("target").value());
    }
    gpus_.push_back(std::move(gpu));
  }

  NcclTopology finish() {
    if (gpus_.empty()) fail("has no <gpu>");
    std::map<std::string, int> on_host;
    for (const Gpu& gpu : gpus_) ++on_host[gpu.host];
    NcclTopology topology;
    topology.hosts = static_cast<int>(on_host.size());
    topology.gpus = on_host.begin()->second;
    for (const auto& [host, gpus] : on_host)
      if (gpus != topology.gpus)
        fail("must have as many GPUs on every host (got " + std::to_string(topology.gpus) +
             " and " + std::to_string(gpus) + ")");
    const Gpu& first = gpus_.front();
    topology.compute_capability = std::max(0, first.capability);
    for (const PciDevice& known : kDevices)
      if (known.vendor == first.vendor && known.device == first.device)
        topology.device = known.name;
    for (const Gpu& gpu : gpus_)
      if (gpu.device != first.device || gpu.vendor != first.vendor ||
          gpu.capability != first.capability)
        fail("must have GPUs of one kind (GPU " + std::to_string(gpu.dev) + " is of another)");
    add_links(topology);
    double pcie = 0;
    for (const Gpu& gpu : gpus_)
      if (gpu.pcie > 0) pcie = pcie > 0 ? std::min(pcie, gpu.pcie) : gpu.pcie;
    topology.pcie = BytesPerSecond(pcie * 1e9);
    add_nics(topology);
    return topology;
  }

  void add_links(NcclTopology& topology) const {
    int least = gpus_.front().links;
    bool switched = true, xgmi = false;
    for (const Gpu& gpu : gpus_) {
      least = std::min(least, gpu.links);
      switched = switched && gpu.switched;
      xgmi = xgmi || gpu.xgmi;
    }
    if (least == 0) return;
    if (!xgmi)
      topology.link = BytesPerSecond(least * nvlink_rate(topology.compute_capability) * 1e9);
    topology.domain = switched ? topology.gpus * topology.hosts : least_joined();
  }

  // Returns the number of accelerators in the smallest group that direct links join.
  int least_joined() const {
    std::map<std::string, std::size_t> at;
    for (std::size_t i = 0; i < gpus_.size(); ++i) at[gpus_[i].host + " " + gpus_[i].bus_id] = i;
    std::vector<bool> seen(gpus_.size());
    std::size_t least = gpus_.size();
    for (std::size_t start = 0; start < gpus_.size(); ++start) {
      if (seen[start]) continue;
      std::vector<std::size_t> group{start};
      seen[start] = true;
      for (std::size_t next = 0; next < group.size(); ++next)
        for (const std::string& peer : gpus_[group[next]].peers)
          if (const auto found = at.find(gpus_[group[next]].host + " " + peer);
              found != at.end() && !seen[found->second]) {
            seen[found->second] = true;
            group.push_back(found->second);
          }
      least = std::min(least, group.size());
    }
    return static_cast<int>(least);
  }

  // The ports of the highest rate, of them those beside accelerators: the others are for storage
  // and management.
  void add_nics(NcclTopology& topology) const {
    if (nets_.empty()) return;
    double fastest = 0;
    for (const Net& net : nets_) fastest = std::max(fastest, net.rate);
    const auto near = [&](const Net& net) {
      return net.rate == fastest && gpu_roots_.contains(net.root);
    };
    const bool any_near = std::any_of(nets_.begin(), nets_.end(), near);
    int all = 0;
    for (const Net& net : nets_) all += any_near ? near(net) : net.rate == fastest;
    topology.nic = BytesPerSecond(fastest * 1e6 / 8);
    topology.nics = std::max(1, all / topology.hosts);
    topology.other_nics = (static_cast<int>(nets_.size()) - all) / topology.hosts;
  }

  std::string file_, host_;
  std::vector<Gpu> gpus_;
  struct Net {
    std::string host;
    double rate = 0;  // Mb/s
    int root = 0;     // the PCIe tree below a CPU that it is in
  };
  std::vector<Net> nets_;
  int root_ = 0;
  std::set<int> gpu_roots_;  // trees with accelerators
};

}  // namespace

NcclTopology read_nccl_topology(const std::string& text, const std::string& file) {
  return Reader(file).read(text);
}

}  // namespace polyphony::sim
