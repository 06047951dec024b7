#include "sim/question/file_cluster.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "shared/error.h"
#include "shared/hardware/devices.h"
#include "shared/text/figure_text.h"

namespace polyphony::sim {
namespace {

using OrderedJson = nlohmann::ordered_json;

// Makes the value of "node" an object, to which figures can be added.
OrderedJson& own_node(const GpuRequest& gpus, OrderedJson& cluster) {
  if (!cluster["node"].is_object())
    cluster["node"] = {{"device", gpus.device}, {"ranks", gpus.per_node}};
  return cluster["node"];
}

void add_links(const MachineFacts& facts, const GpuRequest& gpus, const ShippedDevice* device,
               OrderedJson& cluster) {
  if (facts.link.value && gpus.per_node > 1 &&
      (!device || device->node_link.rate != *facts.link.value))
    own_node(gpus, cluster)["link"] = link_text(*facts.link.value);
  if (!facts.domain.value) return;
  const int domain = *facts.domain.value;
  const int usual = device ? default_domain(*device, gpus.per_node) : 0;
  const bool part = domain < gpus.per_node && gpus.per_node % domain == 0;
  const bool several = domain > gpus.per_node && domain % gpus.per_node == 0;
  if (domain != usual && (part || several)) cluster["domain"] = domain;
  if (part && facts.pcie.value) cluster["bus"] = link_text(*facts.pcie.value);
}

void add_nics(const MachineFacts& facts, const GpuRequest& gpus, const ShippedDevice* device,
              OrderedJson& cluster, std::vector<std::string>& assumed) {
  if (!facts.nic.value || !facts.nics.value) return;
  if (cluster.contains("nic")) {
    assumed.push_back("--nic instead of the NICs of " + facts.nic.file);
    return;
  }
  // The accelerators may be a part of the node's.
  const int all = facts.gpus.value.value_or(gpus.per_node);
  const int nics = std::max(1, *facts.nics.value * gpus.per_node / std::max(1, all));
  BytesPerSecond rate = *facts.nic.value;
  // Whole NICs for an accelerator, or whole accelerators for a NIC.
  int used = std::max(1, nics / gpus.per_node) * gpus.per_node;
  if (nics >= gpus.per_node) {
    rate = BytesPerSecond(rate.value * (nics / gpus.per_node));
  } else {
    used = nics;
    while (gpus.per_node % used != 0) --used;
    cluster["nics"] = used;
  }
  if (used < nics)
    assumed.push_back(count_text(used) + " of the " + count_text(nics) + " NICs of " +
                      facts.nic.file + ": as many for each accelerator");
  if (!device || device->fabric_link.rate != rate) cluster["nic"] = nic_text(rate);
}

void add_switches(const MachineFacts& facts, const GpuRequest& gpus, const ShippedDevice* device,
                  double oversubscription, OrderedJson& cluster,
                  std::vector<std::string>& assumed) {
  int group = facts.leaf_nodes.value.value_or(0);
  std::string file = facts.leaf_nodes.file;
  if (facts.block_nodes.value) {
    const int domain = device ? default_domain(*device, gpus.per_node) : 0;
    if (domain > gpus.per_node) {
      // Blocks of racks are their NVLink domains.
      const int joined = *facts.block_nodes.value * gpus.per_node;
      if (!facts.domain.value && joined != domain) cluster["domain"] = joined;
    } else if (group == 0) {
      group = *facts.block_nodes.value;
      file = facts.block_nodes.file;
    }
  }
  if (group == 0) {
    if (oversubscription > 0)
      throw InputError("--oversubscription", "", "is given, but no file names leaf switches",
                       "--cluster topology.conf");
    return;
  }
  if (gpus.nodes <= group) {
    assumed.push_back("all nodes under one leaf switch of " + file);
  } else if (oversubscription > 1) {
    cluster["leaf"] = {{"nodes", group}, {"oversubscription", oversubscription}};
  } else if (oversubscription == 0) {
    assumed.push_back("uplinks of leaf switches as fast as their NICs: " + file +
                      " has no rates (--oversubscription 2)");
  }
}

}  // namespace

std::string device_of(const MachineFacts& facts) {
  std::string first, file;
  for (const Stated<std::string>& stated : facts.devices) {
    std::string name;
    try {
      name = parse_gpus(*stated.value).device;
    } catch (const InputError&) {  // none that ships
      continue;
    }
    if (!first.empty() && name != first)
      throw InputError(stated.file, "", "has " + name + ", " + file + " has " + first,
                       "give files of one cluster");
    first = name;
    file = stated.file;
  }
  return first;
}

void check_gpus(const MachineFacts& facts, const GpuRequest& request, const std::string& option) {
  const std::string own = device_of(facts);
  if (!own.empty() && !request.device.ends_with(".json") && own != request.device)
    throw InputError(option, "",
                     "names " + request.device + ", " + facts.devices.front().file + " has " + own,
                     "leave out one of them");
  if (facts.gpus.value && request.per_node > *facts.gpus.value)
    throw InputError(option, "",
                     "has " + count_text(request.per_node) + " accelerators a node, " +
                         facts.gpus.file + " has " + count_text(*facts.gpus.value),
                     "state nodes and accelerators of each: 4x" +
                         std::to_string(*facts.gpus.value) + "x" + request.device);
}

GpuRequest gpus_of(const MachineFacts& facts, const std::string& text, const std::string& option) {
  const std::string own = device_of(facts);
  if (text.empty()) {
    if (own.empty())
      throw InputError(option, "", "is missing",
                       !facts.devices.empty()
                           ? "no accelerator \"" + *facts.devices.front().value + "\" of " +
                                 facts.devices.front().file + " ships with the program: 4x8xH100"
                           : "64x8xH100: 64 nodes of 8");
    const Stated<int>& per_node = facts.gpus.value ? facts.gpus : facts.tested_gpus;
    const Stated<int>& nodes = facts.nodes.value ? facts.nodes : facts.tested_nodes;
    if (!per_node.value)
      throw InputError(option, "", "is missing: no file says how many accelerators a node has",
                       "64x8x" + own);
    GpuRequest request = parse_gpus(
        std::to_string(nodes.value.value_or(1)) + "x" + std::to_string(*per_node.value) + "x" + own,
        option);
    if (!nodes.value) request.assumed.push_back("one node: no file says how many (" + option + ")");
    return request;
  }
  const GpuRequest request = parse_gpus(text, option);
  check_gpus(facts, request, option);
  return request;
}

void add_machine_facts(const MachineFacts& facts, const GpuRequest& gpus, double oversubscription,
                       OrderedJson& cluster, std::vector<std::string>& assumed) {
  const ShippedDevice* device = find_device(gpus.device);
  for (const std::string& line : facts.read) assumed.push_back(line);
  if (facts.nodes.value && gpus.nodes > *facts.nodes.value)
    assumed.push_back(count_text(gpus.nodes) + " nodes, though " + facts.nodes.file + " lists " +
                      count_text(*facts.nodes.value));
  add_links(facts, gpus, device, cluster);
  add_nics(facts, gpus, device, cluster, assumed);
  add_switches(facts, gpus, device, oversubscription, cluster, assumed);
}

}  // namespace polyphony::sim
