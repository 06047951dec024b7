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
      "A node spelled out",
      {{"device", any_form({text_form("H100"), object_form(device_form())}),
        "a shipped device by name, or its figures", true},
       {"ranks", integer_form(1, 1 << 16), "accelerators in the node", true},
       {"link", link_rate_form("450GBps"), "between accelerators of one node, one direction"},
       {"link_latency", latency_form("2us"), "of that link"}},
      {}};
  return form;
}

const ObjectForm& leaf_form() {
  static const ObjectForm form{
      "leaf",
      "Leaf switches",
      {{"nodes", integer_form(1, kMostRanks), "in a group, all on the same leaf switches", true},
       {"oversubscription", number_form(1, 1e3),
        "rate of a leaf's NICs over that of its uplinks; 1 when absent"},
       {"rails", integer_form(1, 1 << 16),
        "leaves of a group; NIC i of a node is on leaf i mod rails; 1 when absent"}},
      {}};
  return form;
}

const ObjectForm& degraded_form() {
  static const ObjectForm form{
      "degraded",
      "Of one rank, factors of its rates",
      {{"rank", integer_form(0, kMostRanks - 1), "which", true},
       {"device", number_form(1e-6, 1), "of compute and memory rates; 1 when absent"},
       {"link", number_form(0, 1), "of its node link; 0: failed; 1 when absent"},
       {"nic", number_form(0, 1), "of its NIC; 0: failed; 1 when absent"},
       {"nic_of", integer_form(0, kMostRanks - 1),
        "the rank of the same node whose NIC it uses instead of its own"}},
      {}};
  return form;
}

}  // namespace

Form degraded_ranks_form() { return list_form(object_form(degraded_form()), 0, kMostRanks); }

const ObjectForm& cluster_form() {
  static const ObjectForm form{
      "cluster",
      "Where it runs",
      {{"node", any_form({text_form("hgx-h100"), object_form(node_form())}),
        "a shipped node by name, \"this-machine\", or its figures", true},
       {"nodes", integer_form(1, kMostRanks), "number of nodes; 1 when absent"},
       {"ranks", integer_form(1, 1024), "this-machine: local processes"},
       {"nic", link_rate_form("400Gbps"), "per NIC, between nodes, one direction"},
       {"nic_latency", latency_form("5us"), "between nodes"},
       {"nics", integer_form(1, 1 << 16), "of a node; one for each accelerator when absent"},
       {"domain", integer_form(1, kMostRanks),
        "accelerators that the node's link joins: part of a node (pairs), or several nodes (72); "
        "a node when absent"},
       {"connection", link_rate_form("1.2GBps"),
        "of a NIC, the most that one transfer gets, such as a socket; all of it when absent"},
       {"bus", link_rate_form("31.5GBps"),
        "an accelerator's PCIe link, one direction: between domains of one node, and to its NIC"},
       {"bus_latency", latency_form("2us"), "of that bus"},
       {"host_link", link_rate_form("63GBps"),
        "an accelerator's, to its node's memory, one direction: a shipped device's own when "
        "absent, "
        "the bus where one is said"},
       {"host_latency", latency_form("2us"), "of that link"},
       {"host_memory_rate", link_rate_form("614.4GBps"),
        "of a node's memory, reads and writes together: a shipped device's own when absent; never "
        "short where nothing is known"},
       {"leaf", object_form(leaf_form()),
        "switches that join the nodes; one that never blocks when absent"},
       {"free_links", boolean_form(),
        "messages and collectives take no time: what waiting and work alone make of a step"},
       {"degraded", degraded_ranks_form(),
        "ranks whose device or links are slower than the others', or have failed"},
       {"profile", text_form("h100-roofline"),
        "hardware profile: a shipped name, or a path; the device's own when absent"},
       {"price", price_form("2.50USD/GPUh"), "of one accelerator"},
       {"busy_power", power_form("700W"),
        "of one accelerator that computes; a shipped device's own when absent"},
       {"idle_power", power_form("210W"),
        "of one that waits or communicates; a shipped device's own when absent"}},
      {}};
  return form;
}

}  // namespace polyphony
