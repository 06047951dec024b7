#include "sim/machines/machine_files.h"

#include <doctest/doctest.h>

#include <functional>

#include "shared/error.h"
#include "sim/machines/nccl_topology.h"
#include "sim/machines/slurm_topology.h"
#include "sim/question/file_cluster.h"
#include "tests/shared/support/scenario_files.h"

namespace polyphony::sim {
namespace {

std::string sample(const std::string& name) {
  return test::file_text("tests/system/machines/" + name);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

std::string refusal(const std::function<void()>& read) {
  try {
    read();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("NCCL's topology of a node behind NVSwitches") {
  const NcclTopology node = read_nccl_topology(sample("hgx_h100_topo.xml"), "topo.xml");
  CHECK(node.hosts == 1);
  CHECK(node.gpus == 8);
  CHECK(node.device == "H100");
  CHECK(node.domain == 8);
  CHECK(link_text(node.link) == "450GBps");  // 18 links of 25 GB/s
  CHECK(node.pcie.value == doctest::Approx(63.0e9).epsilon(1e-3));
  CHECK(node.nics == 8);
  CHECK(nic_text(node.nic) == "400Gbps");
  CHECK(node.other_nics == 2);
  // Ports for storage that are as fast are at PCIe switches without accelerators.
  std::string fast = sample("hgx_h100_topo.xml");
  for (std::size_t at; (at = fast.find("speed=\"100000\"")) != std::string::npos;)
    fast.replace(at, 14, "speed=\"400000\"");
  const NcclTopology same = read_nccl_topology(fast, "topo.xml");
  CHECK(same.nics == 8);
  CHECK(same.other_nics == 2);
}

TEST_CASE("NICs that do not divide by accelerators: whole ones, and the rest is told") {
  const auto cluster = [](int nics, std::vector<std::string>& assumed) {
    MachineFacts facts;
    facts.nics = {nics, "topo.xml"};
    facts.nic = {BytesPerSecond(50e9), "topo.xml"};
    nlohmann::ordered_json json{{"node", "hgx-h100"}};
    add_machine_facts(facts, parse_gpus("2x8xH100"), 0, json, assumed);
    return json;
  };
  std::vector<std::string> assumed;
  CHECK(cluster(6, assumed) == nlohmann::ordered_json{{"node", "hgx-h100"}, {"nics", 4}});
  REQUIRE(assumed.size() == 1);
  CHECK(assumed[0] == "4 of the 6 NICs of topo.xml: as many for each accelerator");
  CHECK(cluster(10, assumed) == nlohmann::ordered_json{{"node", "hgx-h100"}});  // 8 of 400 Gb/s
  CHECK(assumed.size() == 2);
  CHECK(cluster(16, assumed) == nlohmann::ordered_json{{"node", "hgx-h100"}, {"nic", "800Gbps"}});
  CHECK(assumed.size() == 2);
}

TEST_CASE("NCCL's topology of a node whose NVLinks join pairs") {
  const NcclTopology node = read_nccl_topology(sample("a40_pairs_topo.xml"), "topo.xml");
  CHECK(node.gpus == 4);
  CHECK(node.device == "A40");
  CHECK(node.domain == 2);
  CHECK(link_text(node.link) == "56.25GBps");  // four links of a bridge
  CHECK(node.pcie.value == doctest::Approx(31.5e9).epsilon(1e-3));
  CHECK(node.nics == 1);
  CHECK(nic_text(node.nic) == "200Gbps");
}

TEST_CASE("an NVLink domain of several hosts, and accelerators without links") {
  // The second CPU becomes another host.
  std::string two = sample("hgx_h100_topo.xml");
  const std::size_t last = two.rfind("0x51c0ffee00000001");
  two.replace(last, 18, "0x51c0ffee00000009");
  const NcclTopology hosts = read_nccl_topology(two, "topo.xml");
  CHECK(hosts.hosts == 2);
  CHECK(hosts.gpus == 4);
  CHECK(hosts.domain == 8);
  CHECK(hosts.nics == 4);
  std::string none = sample("hgx_h100_topo.xml");
  for (std::size_t at; (at = none.find("<nvlink")) != std::string::npos;)
    none.erase(at, none.find("/>", at) + 2 - at);
  const NcclTopology plain = read_nccl_topology(none, "topo.xml");
  CHECK(plain.domain == 0);
  CHECK(plain.link.value == 0);
  const MachineFacts facts =
      read_machine_files({"x.xml"}, [&](const std::string&) { return none; });
  REQUIRE(facts.link.value);
  CHECK(facts.link.value->value == doctest::Approx(63.0e9).epsilon(1e-3));  // PCIe joins them
}

TEST_CASE("a damaged topology of NCCL is refused") {
  const std::string whole = sample("hgx_h100_topo.xml");
  const auto refused = [](const std::string& text) {
    return refusal([&] { read_nccl_topology(text, "topo.xml"); });
  };
  CHECK(refused(whole.substr(0, whole.size() / 2)).find("topo.xml: is not XML") == 0);
  CHECK(refused("<other/>").find("has no <system>") != std::string::npos);
  CHECK(refused("<system/>").find("has no <gpu>") != std::string::npos);
  CHECK(refused(replaced(whole, "sm=\"90\"", "sm=\"80\"")).find("of one kind") !=
        std::string::npos);
  std::string uneven = whole;
  const std::size_t last = uneven.rfind("<gpu");
  uneven.replace(last, 4, "<cpu");
  const std::size_t end = uneven.rfind("</gpu>");
  uneven.replace(end, 6, "</cpu>");
  CHECK(read_nccl_topology(uneven, "topo.xml").gpus == 7);
  std::string deep = "<system><cpu>";
  for (int i = 0; i < 100; ++i) deep += "<a>";
  for (int i = 0; i < 100; ++i) deep += "</a>";
  CHECK(refused(deep + "</cpu></system>").find("nested too deep") != std::string::npos);
}

TEST_CASE("Slurm's lists of hosts are counted") {
  CHECK(hosts_in("a", "f") == 1);
  CHECK(hosts_in("a,b", "f") == 2);
  CHECK(hosts_in("gpu[001-016]", "f") == 16);
  CHECK(hosts_in("gpu[1-4,7],login", "f") == 6);
  CHECK(hosts_in("r[1-2]n[01-10]", "f") == 20);
  for (const char* bad : {"", "gpu[4-1]", "gpu[1-", "gpu]1[", "gpu[a-b]", "gpu[]", "n[0-99999999]",
                          "n[0-1048575][0-999999999,0-999999999,0-999999999]"})
    CHECK_MESSAGE(!refusal([&] { hosts_in(bad, "f"); }).empty(), bad);
}

TEST_CASE("Slurm's topologies: switches, blocks, YAML") {
  const SlurmTopology tree = read_slurm_topology(sample("topology.conf"), "topology.conf");
  CHECK(tree.nodes == 64);
  CHECK(tree.leaves == 4);
  CHECK(tree.leaf_nodes == 16);
  CHECK(tree.switches == 6);
  const SlurmTopology blocks = read_slurm_topology(sample("blocks.conf"), "blocks.conf");
  CHECK(blocks.nodes == 36);
  CHECK(blocks.blocks == 2);
  CHECK(blocks.block_nodes == 18);
  const SlurmTopology yaml = read_slurm_topology(sample("topology.yaml"), "topology.yaml");
  CHECK(yaml.nodes == 48);
  CHECK(yaml.leaf_nodes == 24);
  CHECK(yaml.switches == 3);
  CHECK(read_slurm_topology("SwitchName=a Nodes=b[1-2]\nSwitchName=c \\\n  Nodes=d[1-4]\\\n",
                            "t.conf")
            .nodes == 6);
  CHECK(refusal([] {
          read_slurm_topology("SwitchName=a Nodes=b[1-\n", "t.conf");
        }).find("t.conf:1") == 0);
  CHECK(refusal([] {
          read_slurm_topology("- topology: x\n  flat: true\n", "t.yaml");
        }).find("lists no nodes") != std::string::npos);
}

TEST_CASE("files of one cluster complete each other, and those of two are refused") {
  const auto load = [](const std::string& file) {
    if (file == "other.xml")
      return replaced(sample("hgx_h100_topo.xml"), "<gpu dev=\"7\"", "<gone dev=\"7\"");
    return sample(file);
  };
  const MachineFacts facts =
      read_machine_files({"hgx_h100_topo.xml", "topology.conf", "all_reduce.json"}, load);
  CHECK(device_of(facts) == "H100");
  CHECK(device_of(read_machine_files({"all_reduce.json", "hgx_h100_topo.xml"}, load)) == "H100");
  const MachineFacts two =
      read_machine_files({"a40_pairs_topo.xml", "all_reduce.conf"}, [&](const std::string& file) {
        return file == "all_reduce.conf" ? std::string(
                                               "SwitchName=gpu_perf "
                                               "Nodes=gpu_perf[1-16]\n")
                                         : sample(file);
      });
  CHECK(two.nodes.value == 16);
  CHECK(facts.gpus.value == 8);
  CHECK(facts.nodes.value == 64);
  CHECK(facts.leaf_nodes.value == 16);
  CHECK(facts.read.size() == 3);
  // nccl-tests on one accelerator of each of two hosts: of nodes with 8.
  const auto pair = [&](const std::string& file) {
    return file == "pair.json" ? R"({"version": 1, "config": {}, "devices": [
                    {"rank": 0, "hostname": "a", "device_info": "NVIDIA H100 80GB HBM3"},
                    {"rank": 1, "hostname": "b", "device_info": "NVIDIA H100 80GB HBM3"}],
                    "args": ["./build/all_reduce_perf"],
                    "results": [{"size": 1048576, "count": 262144, "type": "float",
                    "redop": "sum", "root": "-1", "out_of_place": {"time": 100.0, "alg_bw": 10.0,
                    "bus_bw": 10.0, "nwrong": 0}}]})"
                               : sample(file);
  };
  const GpuRequest tested =
      gpus_of(read_machine_files({"pair.json", "hgx_h100_topo.xml"}, pair), "", "--gpus");
  CHECK(tested.nodes == 2);
  CHECK(tested.per_node == 8);
  CHECK(gpus_of(read_machine_files({"pair.json"}, pair), "", "--gpus").per_node == 1);
  const auto four = [&](const std::string& file) {
    std::string text = sample(file);
    if (file == "hgx_h100_topo.xml")
      for (const char* dev : {"4", "5", "6", "7"})
        text = replaced(text, "<gpu dev=\"" + std::string(dev) + "\"", "<gone dev=\"x\"");
    for (std::size_t at; (at = text.find("<gone")) != std::string::npos;) {
      text.replace(at, 5, "<cpu");
      const std::size_t end = text.find("</gpu>", at);
      text.replace(end, 6, "</cpu>");
    }
    return text;
  };
  CHECK(refusal([&] { read_machine_files({"all_reduce.json", "hgx_h100_topo.xml"}, four); }) ==
        "all_reduce.json: uses 8 accelerators a node, hgx_h100_topo.xml has 4 (give files of one "
        "cluster)");
  CHECK(refusal([&] { read_machine_files({"hgx_h100_topo.xml", "a40_pairs_topo.xml"}, load); }) ==
        "a40_pairs_topo.xml: says 4 accelerators a node, hgx_h100_topo.xml says 8 (give files of "
        "one cluster)");
  CHECK(refusal([&] {
          read_machine_files({"x"}, [](const std::string&) { return "hello"; });
        }).find("x: is no file about machines") == 0);
}

}  // namespace polyphony::sim
