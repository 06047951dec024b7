#include "shared/scenario_io/overrides_json.h"

#include <doctest/doctest.h>

#include "shared/hardware/devices.h"
#include "tests/shared/support/scenario_files.h"

using namespace polyphony;

namespace {

const char* const kLarge = "scenarios/vlm_12b_70b_h100.json";  // "node": "hgx-h100", nodes 64
const char* const kTiny = "scenarios/tiny.json";               // this-machine, pp 2 of 2 ranks

Scenario with(const char* file, const std::vector<std::string>& texts) {
  std::vector<Override> overrides;
  for (const std::string& text : texts) overrides.push_back(parse_override(text));
  return read_scenario(test::file_text(file), file, test::file_text, overrides);
}

std::string refused(const char* file, const std::vector<std::string>& texts) {
  try {
    with(file, texts);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("an override changes a value and all values that follow from it") {
  const Scenario slow = with(kLarge, {"cluster.nic=100Gbps"});
  CHECK(slow.cluster.fabric_link.rate == BytesPerSecond(12.5e9));
  CHECK(with(kLarge, {"/cluster/nic=100Gbps"}).cluster == slow.cluster);
  CHECK(with(kLarge, {"cluster.nodes=128"}).cluster.ranks() == 1024);
  // The layout's ranks are not written, so they follow the cluster's.
  const Scenario four = with(kTiny, {"cluster.ranks=4"});
  CHECK(four.layout->modules.back().ranks == 4);
  CHECK(four.layout->modules.back().dp() == 2);
  CHECK(with(kTiny, {"layout.schedule=gpipe"}).layout->schedule == ScheduleKind::gpipe);
  CHECK(with(kTiny, {"layout.all.blocks=[1,3]"}).layout->modules.back().blocks ==
        std::vector<int>{1, 3});
  CHECK(with(kTiny, {"layout.all.tp=2", "layout.all.pp=null"}).layout->modules.back().tp == 2);
  CHECK(with(kTiny, {"training.learning_rate=0.5"}).training.learning_rate == 0.5);
}

TEST_CASE("a path through a preset replaces the preset by its resolved form") {
  const Cluster written = with(kLarge, {}).cluster;
  Cluster expected = written;
  expected.node_link.rate = BytesPerSecond(200e9);
  CHECK(with(kLarge, {"cluster.node.link=200GBps"}).cluster == expected);
  expected = written;
  expected.device.memory = Bytes(std::int64_t{40} << 30);
  const Scenario small = with(kLarge, {"cluster.node.device.memory=40GiB"});
  CHECK(small.cluster == expected);
  CHECK(shipped_profile(small.cluster)->device == expected.device);
}

TEST_CASE("no override changes nothing") {
  for (const std::string& path : test::scenario_paths()) {
    CAPTURE(path);
    CHECK(resolved_text(with(path.c_str(), {})) == resolved_text(test::scenario_at(path)));
  }
}

TEST_CASE("wrong paths and values are rejected as in the file, and name the override") {
  CHECK(refused(kLarge, {"cluster.nik=1Gbps"}) ==
        "set cluster.nik=1Gbps: /cluster/nik: unknown key \"nik\" (did you mean \"nic\"?)");
  CHECK(refused(kLarge, {"cluser.nic=1Gbps"}) ==
        "set cluser.nic=1Gbps: /cluser: unknown key \"cluser\" (did you mean \"cluster\"?)");
  CHECK(refused(kLarge, {"cluster.nic=400"})
            .starts_with("set cluster.nic=400: /cluster/nic: 400 has no unit (write "));
  CHECK(refused(kLarge, {"cluster.nodes=many"})
            .starts_with("set cluster.nodes=many: /cluster/nodes: a text is not allowed here"));
  CHECK(refused(kTiny, {"layout.all.tp=2", "layout.schedule=1f2b"})
            .starts_with("set layout.schedule=1f2b: /layout/schedule: unknown value \"1f2b\""));
  CHECK(refused(kTiny, {"model=null"}).find("key \"model\" is missing") != std::string::npos);
  CHECK(refused(kTiny, {"cluster.nic"}) ==
        "set cluster.nic: \"=\" is missing (write PATH=VALUE, such as cluster.nic=100Gbps)");
  CHECK(refused(kTiny, {"cluster..nic=1"})
            .starts_with("set cluster..nic=1: the path has an empty key"));
  CHECK(refused(kTiny, {"=1"}).starts_with("set =1: the path has an empty key"));
  CHECK(refused(kTiny, {"about.more=1"}) ==
        "set about.more=1: /about/more: the path leads through a value that has no keys (end the "
        "path at this value)");
  // An error that the override does not cause names the file.
  CHECK(refused(kTiny, {"cluster.nodes=2"}).find("this machine is one node") != std::string::npos);
}
