#include "sim/machines/machine_files.h"

#include <sstream>

#include "shared/error.h"
#include "shared/text/figure_text.h"
#include "sim/machines/nccl_topology.h"
#include "sim/machines/slurm_topology.h"
#include "traces/import/nccl_tests.h"

namespace polyphony::sim {
namespace {

std::string text_of(int value) { return count_text(value); }
std::string text_of(BytesPerSecond value) { return link_text(value); }

std::string with_unit(double value, const char* unit) {
  std::ostringstream text;
  text << value << unit;  // six digits
  return text.str();
}

template <class T>
void state(Stated<T>& stated, const T& value, const std::string& file, const char* what) {
  if (stated.value && *stated.value != value)
    throw InputError(file, "",
                     std::string("says ") + text_of(value) + " " + what + ", " + stated.file +
                         " says " + text_of(*stated.value),
                     "give files of one cluster");
  stated = {value, file};
}

void add_nccl(const std::string& text, const std::string& file, MachineFacts& facts) {
  const NcclTopology found = read_nccl_topology(text, file);
  state(facts.gpus, found.gpus, file, "accelerators a node");
  std::string line = file + ": " + counted(found.gpus, "accelerator", "accelerators") + " a node";
  if (!found.device.empty()) {
    facts.devices.push_back({found.device, file});
    line += " (" + found.device + ")";
  } else if (found.compute_capability > 0) {
    line += " of compute capability " + std::to_string(found.compute_capability / 10) + "." +
            std::to_string(found.compute_capability % 10);
  }
  if (found.link.value > 0) {
    state(facts.link, found.link, file, "between accelerators");
    line += ", NVLink " + link_text(found.link) + " each";
  } else if (found.domain == 0 && found.gpus > 1 && found.pcie.value > 0) {
    // Without links, PCIe joins the accelerators of a node.
    state(facts.link, found.pcie, file, "between accelerators");
    line += ", PCIe " + link_text(found.pcie) + " each, no NVLink";
  }
  if (found.domain > 0 && found.domain != found.gpus) {
    state(facts.domain, found.domain, file, "accelerators joined by links");
    line += ", " + count_text(found.domain) + " joined by them";
  }
  if (found.pcie.value > 0) state(facts.pcie, found.pcie, file, "of PCIe");
  if (found.nics > 0) {
    state(facts.nics, found.nics, file, "NICs a node");
    state(facts.nic, found.nic, file, "a NIC");
    line += ", " + counted(found.nics, "NIC", "NICs") + " of " + nic_text(found.nic) + " a node";
    if (found.other_nics > 0)
      line += " (" + counted(found.other_nics, "port", "ports") +
              " left out: slower, or at no accelerator's PCIe switch)";
  }
  facts.read.push_back(line);
}

void add_slurm(const std::string& text, const std::string& file, MachineFacts& facts) {
  const SlurmTopology found = read_slurm_topology(text, file);
  state(facts.nodes, found.nodes, file, "nodes");
  std::string line = file + ": " + counted(found.nodes, "node", "nodes");
  if (found.leaves > 0) {
    state(facts.leaf_nodes, found.leaf_nodes, file, "nodes under a leaf switch");
    line += ", " + counted(found.leaves, "leaf switch", "leaf switches") + " of " +
            counted(found.leaf_nodes, "node", "nodes");
  }
  if (found.blocks > 0) {
    state(facts.block_nodes, found.block_nodes, file, "nodes of a block");
    line += ", " + counted(found.blocks, "block", "blocks") + " of " +
            counted(found.block_nodes, "node", "nodes");
  }
  facts.read.push_back(line);
}

void add_nccl_tests(const std::string& text, const std::string& file, MachineFacts& facts) {
  const traces::CollectiveTimes found = traces::read_nccl_tests(text, file);
  // Tests often use a part of the machines.
  const int gpus = (found.ranks + found.nodes - 1) / found.nodes;
  if (gpus > facts.tested_gpus.value.value_or(0)) facts.tested_gpus = {gpus, file};
  if (found.nodes > facts.tested_nodes.value.value_or(0)) facts.tested_nodes = {found.nodes, file};
  if (!found.device.empty()) facts.devices.push_back({found.device, file});
  facts.read.push_back(file + ": " + counted(found.ranks, "accelerator", "accelerators") + " on " +
                       counted(found.nodes, "node", "nodes") +
                       (found.device.empty() ? "" : " (" + found.device + ")") +
                       "; its times correct a profile: polyphony calibrate " + file);
}

bool has_word(const std::string& text, const char* word) {
  return text.find(word) != std::string::npos;
}

}  // namespace

std::string link_text(BytesPerSecond rate) { return with_unit(rate.value / 1e9, "GBps"); }
std::string nic_text(BytesPerSecond rate) { return with_unit(rate.value * 8 / 1e9, "Gbps"); }

MachineFacts read_machine_files(const std::vector<std::string>& files, const LoadText& load) {
  MachineFacts facts;
  for (const std::string& file : files) {
    const std::string text = load(file);
    const std::size_t begin = text.find_first_not_of(" \t\r\n");
    const char first = begin == std::string::npos ? ' ' : text[begin];
    if (first == '<')
      add_nccl(text, file, facts);
    else if (file.ends_with(".yaml") || file.ends_with(".yml") || has_word(text, "SwitchName") ||
             has_word(text, "BlockName"))
      add_slurm(text, file, facts);
    else if (first == '{' || has_word(text, "nccl-tests") || has_word(text, "_perf") ||
             has_word(text, "# Using devices"))
      add_nccl_tests(text, file, facts);
    else
      throw InputError(file, "", "is no file about machines",
                       "NCCL's topology (NCCL_TOPO_DUMP_FILE), Slurm's topology.conf or "
                       "topology.yaml, or the output of nccl-tests");
  }
  if (facts.gpus.value && facts.tested_gpus.value.value_or(0) > *facts.gpus.value)
    throw InputError(facts.tested_gpus.file, "",
                     "uses " + count_text(*facts.tested_gpus.value) + " accelerators a node, " +
                         facts.gpus.file + " has " + count_text(*facts.gpus.value),
                     "give files of one cluster");
  return facts;
}

}  // namespace polyphony::sim
