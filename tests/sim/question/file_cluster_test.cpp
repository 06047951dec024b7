#include "sim/question/file_cluster.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "shared/error.h"
#include "sim/question/question.h"
#include "tests/shared/support/scenario_files.h"

namespace polyphony::sim {
namespace {

using OrderedJson = nlohmann::ordered_json;

MachineFacts facts_of(const std::vector<std::string>& files) {
  return read_machine_files(files, [](const std::string& file) {
    return test::file_text("tests/system/machines/" + file);
  });
}

// The cluster of a question whose files these are, and what is said of them.
struct Answer {
  OrderedJson cluster;
  std::vector<std::string> assumed;
  bool says(const std::string& text) const {
    for (const std::string& line : assumed)
      if (line.find(text) != std::string::npos) return true;
    return false;
  }
};
Answer cluster_of(const std::vector<std::string>& files, const std::string& gpus,
                  double oversubscription = 0, const std::string& nic = "") {
  const MachineFacts facts = facts_of(files);
  const GpuRequest request = gpus_of(facts, gpus, "--gpus");
  Answer answer{cluster_json(request, nic, "", ""), {}};
  add_machine_facts(facts, request, oversubscription, answer.cluster, answer.assumed);
  return answer;
}

std::string refusal(const std::vector<std::string>& files, const std::string& gpus,
                    double oversubscription = 0) {
  try {
    cluster_of(files, gpus, oversubscription);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("files that say what a shipped node is change nothing") {
  const Answer answer = cluster_of({"hgx_h100_topo.xml"}, "4x8xH100");
  CHECK(answer.cluster == OrderedJson{{"node", "hgx-h100"}, {"nodes", 4}});
  CHECK(
      answer.says("hgx_h100_topo.xml: 8 accelerators a node (H100), NVLink 450GBps each, 8 NICs"));
}

TEST_CASE("files alone are enough") {
  const Answer answer = cluster_of({"hgx_h100_topo.xml", "topology.conf"}, "");
  CHECK(answer.cluster == OrderedJson{{"node", "hgx-h100"}, {"nodes", 64}});
  CHECK(answer.says("--oversubscription"));
  const Answer narrow = cluster_of({"hgx_h100_topo.xml", "topology.conf"}, "", 3);
  CHECK(narrow.cluster["leaf"] == OrderedJson{{"nodes", 16}, {"oversubscription", 3.0}});
  CHECK(cluster_of({"all_reduce.json"}, "").cluster ==
        OrderedJson{{"node", "hgx-h100"}, {"nodes", 1}});
}

TEST_CASE("pairs of NVLink and a NIC for all of a node become the scenario's") {
  const Answer answer = cluster_of({"a40_pairs_topo.xml"}, "6x4xA40");
  CHECK(answer.cluster["node"]["link"] == "56.25GBps");
  CHECK(answer.cluster["domain"] == 2);
  CHECK(answer.cluster["bus"].get<std::string>().starts_with("31.5"));
  CHECK(answer.cluster["nics"] == 1);
  CHECK(answer.cluster["nic"] == "200Gbps");
  const Answer stated = cluster_of({"a40_pairs_topo.xml"}, "6x4xA40", 0, "100Gbps");
  CHECK(stated.cluster["nic"] == "100Gbps");
  CHECK(stated.says("--nic instead of the NICs"));
}

TEST_CASE("blocks of racks are their NVLink domains") {
  const Answer whole = cluster_of({"blocks.conf"}, "36x4xGB200");
  CHECK_FALSE(whole.cluster.contains("domain"));  // 18 trays of 4: 72, as shipped
  CHECK_FALSE(whole.cluster.contains("leaf"));
  // Of other accelerators they are groups under a switch.
  CHECK(cluster_of({"blocks.conf"}, "36x8xH100", 2).cluster["leaf"]["nodes"] == 18);
}

TEST_CASE("what the files contradict is refused") {
  CHECK(refusal({"hgx_h100_topo.xml"}, "8xA40").find("names A40, hgx_h100_topo.xml has H100") !=
        std::string::npos);
  CHECK(refusal({"a40_pairs_topo.xml"}, "2x8xA40").find("8 accelerators a node") !=
        std::string::npos);
  CHECK(refusal({"topology.conf"}, "").find("--gpus: is missing") == 0);
  CHECK(refusal({"hgx_h100_topo.xml"}, "8xH100", 2).find("no file names leaf switches") !=
        std::string::npos);
  // A part of a node's accelerators is a question of its own.
  CHECK(cluster_of({"hgx_h100_topo.xml"}, "4xH100").cluster["node"]["ranks"] == 4);
}

}  // namespace polyphony::sim
