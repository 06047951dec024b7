#include "shared/form/degraded_ranks.h"
#include "shared/form/scenario_form.h"
#include "shared/hardware/device_json.h"

namespace polyphony {
namespace {

const ObjectForm& device_form() {
  static const ObjectForm form{
      "device", "An accelerator that does not ship with the program", device_fields(), {}};
  return form;
}

const ObjectForm& node_form() {
  static const ObjectForm form{
      "node",
      "A node, given by its figures",
      {{"device", any_form({text_form("H100"), object_form(device_form())}),
        "the accelerator: the name of a shipped device, the path of a device file (.json), or an "
        "object with its figures",
        true},
       {"ranks", integer_form(1, 1 << 16), "number of accelerators in a node, one rank on each",
        true},
       {"link", link_rate_form("450GBps"),
        "rate of an accelerator's link to the others of its node, in one direction; a shipped "
        "device's own when absent"},
       {"link_latency", latency_form("2us"),
        "latency of a transfer between accelerators of one node; a shipped device's own, or 0, "
        "when absent"},
       {"peer_link", link_rate_form("64GBps"),
        "part of link that goes to each single other accelerator, where no switch joins them (a "
        "mesh, such as xGMI); a shipped device's own, or all of link, when absent"}},
      {}};
  return form;
}

const ObjectForm& leaf_form() {
  static const ObjectForm form{
      "leaf",
      "Leaf switches, each of which connects a group of nodes to the core of the network",
      {{"nodes", integer_form(1, kMostRanks),
        "number of nodes in a group; the nodes of a group share their leaf switches", true},
       {"oversubscription", number_form(1, 1e3),
        "sum of the rates of a leaf switch's NICs, divided by the sum of the rates of its uplinks; "
        "1 when absent"},
       {"rails", integer_form(1, 1 << 16),
        "number of leaf switches of a group; NIC i of a node is on leaf switch i mod rails; 1 when "
        "absent"}},
      {}};
  return form;
}

const ObjectForm& degraded_form() {
  static const ObjectForm form{
      "degraded",
      "One rank whose device or links are slower than their figures; a factor of 0.5 halves a rate",
      {{"rank", integer_form(0, kMostRanks - 1), "the degraded rank, from 0", true},
       {"device", number_form(1e-6, 1),
        "factor of the device's compute and memory rates; 1 when absent"},
       {"link", number_form(0, 1),
        "factor of the rate of its link inside the node; 0: the link has failed; 1 when absent"},
       {"nic", number_form(0, 1),
        "factor of the rate of its NIC; 0: the NIC has failed; 1 when absent"},
       {"nic_of", integer_form(0, kMostRanks - 1),
        "the rank of the same node whose NIC it uses instead of its own; its own NIC when absent"}},
      {}};
  return form;
}

}  // namespace

Form degraded_ranks_form() { return list_form(object_form(degraded_form()), 0, kMostRanks); }

const ObjectForm& cluster_form() {
  static const ObjectForm form{
      "cluster",
      "The machine that the training runs on",
      {{"node", any_form({text_form("hgx-h100"), object_form(node_form())}),
        "the node: the name of a shipped one, \"this-machine\" (local processes), or an object "
        "with its figures",
        true},
       {"nodes", integer_form(1, kMostRanks), "number of nodes; 1 when absent"},
       {"ranks", integer_form(1, 1024),
        "number of local processes; for node \"this-machine\" only, where it is required"},
       {"nic", link_rate_form("400Gbps"),
        "rate of one NIC, in one direction; a shipped device's own when absent"},
       {"nic_latency", latency_form("5us"),
        "latency of a transfer between nodes; a shipped device's own, or 0, when absent"},
       {"nics", integer_form(1, 1 << 16),
        "number of NICs of a node, shared evenly by its accelerators; one for each accelerator "
        "when absent"},
       {"domain", integer_form(1, kMostRanks),
        "number of accelerators that the link joins (scale-up domain): part of a node (NVLink "
        "pairs: 2), one node, or several nodes (NVL72: 72); the device's own, usually one node, "
        "when absent"},
       {"connection", link_rate_form("1.2GBps"),
        "highest rate that one transfer (a socket or queue pair) reaches on a NIC; the rate of the "
        "NIC when absent"},
       {"bus", link_rate_form("31.5GBps"),
        "rate of an accelerator's PCIe link, in one direction: for transfers between domains of "
        "one node and to its NIC; not modeled when absent"},
       {"bus_latency", latency_form("2us"), "latency of a transfer over the bus; 0 when absent"},
       {"host_link", link_rate_form("63GBps"),
        "rate of an accelerator's link to the memory of its node, in one direction; a shipped "
        "device's own when absent; not allowed together with \"bus\", which is this link then"},
       {"host_latency", latency_form("2us"),
        "latency of a transfer over host_link; a shipped device's own, or 0, when absent"},
       {"host_memory_rate", link_rate_form("614.4GBps"),
        "rate of a node's memory, reads and writes together; a shipped device's own when absent; "
        "without any figure it is never the bottleneck"},
       {"leaf", object_form(leaf_form()),
        "leaf switches that connect the nodes; one nonblocking switch when absent"},
       {"free_links", boolean_form(),
        "true: messages and collectives take no time, so that the step time shows compute and "
        "pipeline bubbles alone; false when absent"},
       {"degraded", degraded_ranks_form(),
        "ranks whose device or links are slower than the others' or have failed; none when absent"},
       {"profile", text_form("h100-roofline"),
        "hardware profile: the name of a shipped one, or the path of a .json file; the device's "
        "own when absent"},
       {"price", price_form("2.50USD/GPUh"),
        "price of one accelerator; needed for the goal \"dollars\""},
       {"busy_power", power_form("700W"),
        "power of one accelerator while it computes; a shipped device's own when absent"},
       {"idle_power", power_form("210W"),
        "power of one accelerator while it waits or communicates; a shipped device's own when "
        "absent"}},
      {}};
  return form;
}

}  // namespace polyphony
