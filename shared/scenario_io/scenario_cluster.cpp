#include <algorithm>
#include <optional>

#include "shared/hardware/device_file_json.h"
#include "shared/hardware/device_json.h"
#include "shared/hardware/devices.h"
#include "shared/scenario_io/scenario_parts.h"

namespace polyphony {
namespace {

constexpr const char* kThisMachine = "this-machine";
constexpr const char* kThisDevice = "cpu-core";

const ShippedDevice& shipped(const JsonValue& place, const std::string& device) {
  const ShippedDevice* found = find_device(device);
  if (found == nullptr)
    place.refuse("no device \"" + device + "\" ships with the program",
                 suggest(device, device_names()) +
                     ", a path that ends in .json, or give the figures of the device");
  return *found;
}

void use_device(Cluster& cluster, const ShippedDevice& device) {
  cluster.device = device.device;
  cluster.node_link = device.node_link;
  cluster.peer_link = device.peer_link;
  cluster.fabric_link = device.fabric_link;
  cluster.host_link = device.host_link;
  cluster.profile = device.file.empty() ? default_profile(device.device.name) : device.file;
  cluster.busy_power = device.busy_power;
  cluster.idle_power = device.idle_power;
}

// The read_…node() functions return the device if the scenario names one: a shipped device, or a
// user's file.
using NamedDevice = std::optional<ShippedDevice>;

NamedDevice read_named_node(const JsonValue& value, Cluster& cluster) {
  const std::string node = value.at("node").text();
  if (node == kThisMachine) {
    const ShippedDevice& device = shipped(value.at("node"), kThisDevice);
    use_device(cluster, device);
    if (value.has("nodes"))
      value.refuse_at("nodes", "nodes must not be given: this machine is one node",
                      "write \"ranks\", the number of processes");
    if (!value.read("ranks", cluster.ranks_per_node))
      value.refuse("key \"ranks\" is missing",
                   "write the number of processes to start on this machine, such as 2");
    return device;
  }
  std::vector<std::string> names = {kThisMachine};
  for (const ShippedDevice& device : shipped_devices()) {
    for (const NamedNode& named : device.nodes) {
      names.push_back(named.name);
      if (node != named.name) continue;
      use_device(cluster, device);
      cluster.ranks_per_node = named.ranks;
      if (value.has("ranks"))
        value.refuse_at("ranks",
                        "ranks must not be given: the node has " + std::to_string(named.ranks) +
                            " accelerators",
                        "write \"nodes\" instead");
      return device;
    }
  }
  value.refuse_at(
      "node", "no node \"" + node + "\" ships with the program",
      suggest(node, names) + ", or give its figures: {\"device\": \"H100\", \"ranks\": 4}");
}

NamedDevice read_own_node(const JsonValue& value, const JsonValue& node, const OtherFiles& files,
                          Cluster& cluster) {
  if (value.has("ranks"))
    value.refuse_at("ranks", "ranks must not be given: the node has them",
                    "write \"nodes\" instead");
  node.read("ranks", cluster.ranks_per_node);
  const JsonValue device = node.at("device");
  NamedDevice named;
  if (device.is_text()) {
    named = is_profile_file(device.text())
                ? read_own_device(files.text(device), files.place(device))
                : shipped(device, device.text());
    use_device(cluster, *named);
  } else {
    cluster.device = read_device(device);
  }
  if (cluster.ranks_per_node > 1 && cluster.node_link.rate.value == 0 && !node.has("link"))
    node.refuse("key \"link\" is missing",
                "a device with figures of its own has no default link rate; write it, such as "
                "\"450GBps\"");
  node.read("link", cluster.node_link.rate);
  node.read("link_latency", cluster.node_link.latency);
  if (!node.read("peer_link", cluster.peer_link))
    cluster.peer_link = std::min(cluster.peer_link, cluster.node_link.rate);
  return named;
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

ReadCluster read_cluster(const JsonValue& value, const OtherFiles& files,
                         std::vector<std::string>& notes) {
  Cluster cluster;
  const JsonValue node = value.at("node");
  NamedDevice device =
      node.is_text() ? read_named_node(value, cluster) : read_own_node(value, node, files, cluster);
  // Figures in the scenario under a shipped device's name change that device.
  if (const ShippedDevice* same = find_device(cluster.device.name); same != nullptr && !device)
    device = *same;
  if (device) {
    cluster.host_memory = device->host_memory * cluster.ranks_per_node;
    cluster.domain = default_domain(*device, cluster.ranks_per_node);
  }
  value.read("nodes", cluster.nodes);
  value.read("nic", cluster.fabric_link.rate);
  value.read("nic_latency", cluster.fabric_link.latency);
  if (cluster.nodes > 1 && cluster.fabric_link.rate.value == 0 && !value.has("nic"))
    value.refuse(
        "key \"nic\" is missing",
        "several nodes need a link between them; write the rate of a NIC, such as \"400Gbps\"");
  value.read("free_links", cluster.free_links);
  read_profile(value, files, cluster);
  if (device && !device->file.empty() && !device->fit && !value.has("profile"))
    notes.push_back("device " + cluster.device.name + " (" + device->file +
                    ") has no fit: the efficiencies of " + kThisDevice +
                    " are assumed, deliberately slow");
  read_topology(value, cluster);
  if (value.has("busy_power")) cluster.busy_power = parse_power(value.at("busy_power").text());
  if (value.has("idle_power")) cluster.idle_power = parse_power(value.at("idle_power").text());
  if (value.has("price")) cluster.dollars_per_rank_hour = parse_price(value.at("price").text());
  const bool accelerator = device && cluster.device.bf16 > cluster.device.fp32;
  return {cluster, accelerator ? NumberFormat::bf16 : NumberFormat::fp32};
}

}  // namespace polyphony
