#include "shared/hardware/device_json.h"
#include "shared/hardware/devices.h"
#include "shared/scenario_io/scenario_parts.h"

namespace polyphony {
namespace {

// The shipped nodes: products whose accelerators share one switch.
struct NodePreset {
  const char* name;
  const char* device;
  int ranks;
};
// Source: NVIDIA HGX data sheets (8 accelerators a board); GB200 NVL72 data sheet (72 in one NVLink
// domain, 18 trays of 4).
constexpr NodePreset kNodes[] = {
    {"hgx-a100-40", "A100-40", 8}, {"hgx-a100-80", "A100-80", 8}, {"hgx-h100", "H100", 8},
    {"hgx-h800", "H800", 8},       {"hgx-h200", "H200", 8},       {"hgx-h20", "H20", 8},
    {"hgx-b200", "B200", 8},       {"gb200-nvl72", "GB200", 72},  {"gb200-tray", "GB200", 4}};
constexpr const char* kThisMachine = "this-machine";
constexpr const char* kThisDevice = "cpu-core";

const ShippedDevice& shipped(const JsonValue& place, const std::string& device) {
  const ShippedDevice* found = find_device(device);
  if (found == nullptr)
    place.refuse("no device \"" + device + "\" ships with the program",
                 suggest(device, device_names()) + ", or give the figures of the device");
  return *found;
}

void use_device(Cluster& cluster, const ShippedDevice& device) {
  cluster.device = device.device;
  cluster.node_link = device.node_link;
  cluster.fabric_link = device.fabric_link;
  cluster.host_link = device.host_link;
  cluster.profile = default_profile(device.device.name);
  cluster.busy_power = device.busy_power;
  cluster.idle_power = device.idle_power;
}

void read_named_node(const JsonValue& value, Cluster& cluster) {
  const std::string node = value.at("node").text();
  if (node == kThisMachine) {
    use_device(cluster, shipped(value.at("node"), kThisDevice));
    if (value.has("nodes"))
      value.refuse_at("nodes", "nodes must not be given: this machine is one node",
                      "write \"ranks\", the number of processes");
    if (!value.read("ranks", cluster.ranks_per_node))
      value.refuse("key \"ranks\" is missing",
                   "write the number of processes to start on this machine, such as 2");
    return;
  }
  std::vector<std::string> names = {kThisMachine};
  for (const NodePreset& preset : kNodes) {
    names.emplace_back(preset.name);
    if (node != preset.name) continue;
    use_device(cluster, shipped(value.at("node"), preset.device));
    cluster.ranks_per_node = preset.ranks;
    if (value.has("ranks"))
      value.refuse_at(
          "ranks",
          "ranks must not be given: the node has " + std::to_string(preset.ranks) + " accelerators",
          "write \"nodes\" instead");
    return;
  }
  value.refuse_at(
      "node", "no node \"" + node + "\" ships with the program",
      suggest(node, names) + ", or give its figures: {\"device\": \"H100\", \"ranks\": 4}");
}

void read_own_node(const JsonValue& value, const JsonValue& node, Cluster& cluster) {
  if (value.has("ranks"))
    value.refuse_at("ranks", "ranks must not be given: the node has them",
                    "write \"nodes\" instead");
  node.read("ranks", cluster.ranks_per_node);
  const JsonValue device = node.at("device");
  if (device.is_text()) {
    use_device(cluster, shipped(device, device.text()));
  } else {
    cluster.device = read_device(device);
    if (cluster.ranks_per_node > 1 && !node.has("link"))
      node.refuse("key \"link\" is missing",
                  "a device with figures of its own has no default link rate; write it, such as "
                  "\"450GBps\"");
  }
  node.read("link", cluster.node_link.rate);
  node.read("link_latency", cluster.node_link.latency);
}

void read_profile(const JsonValue& value, const OtherFiles& files, Cluster& cluster) {
  if (!value.has("profile")) {
    if (cluster.profile.empty())
      value.refuse("key \"profile\" is missing",
                   "a device with figures of its own needs one: the name of one of " +
                       std::to_string(profile_names().size()) +
                       " shipped profiles, such as h100-roofline, or a path");
    return;
  }
  const std::string profile = value.at("profile").text();
  const bool is_path = is_profile_file(profile);
  if (!is_path && find_profile(profile) == nullptr)
    value.refuse_at("profile", "no profile \"" + profile + "\" ships with the program",
                    suggest(profile, profile_names()) + ", or a path that ends in .json");
  cluster.profile = is_path ? files.place(value.at("profile")) : profile;
}

}  // namespace

NumberFormat default_precision(const Device& device) {
  const ShippedDevice* shipped = find_device(device.name);
  const bool accelerator = shipped != nullptr && device.bf16 > device.fp32;
  return accelerator ? NumberFormat::bf16 : NumberFormat::fp32;
}

Cluster read_cluster(const JsonValue& value, const OtherFiles& files) {
  Cluster cluster;
  const JsonValue node = value.at("node");
  if (node.is_text()) {
    read_named_node(value, cluster);
  } else {
    read_own_node(value, node, cluster);
  }
  if (const ShippedDevice* known = find_device(cluster.device.name))
    cluster.host_memory = known->host_memory * cluster.ranks_per_node;
  value.read("nodes", cluster.nodes);
  value.read("nic", cluster.fabric_link.rate);
  value.read("nic_latency", cluster.fabric_link.latency);
  if (cluster.nodes > 1 && cluster.fabric_link.rate.value == 0 && !value.has("nic"))
    value.refuse(
        "key \"nic\" is missing",
        "several nodes need a link between them; write the rate of a NIC, such as \"400Gbps\"");
  value.read("free_links", cluster.free_links);
  read_profile(value, files, cluster);
  read_topology(value, cluster);
  if (value.has("busy_power")) cluster.busy_power = parse_power(value.at("busy_power").text());
  if (value.has("idle_power")) cluster.idle_power = parse_power(value.at("idle_power").text());
  if (value.has("price")) cluster.dollars_per_rank_hour = parse_price(value.at("price").text());
  return cluster;
}

}  // namespace polyphony
