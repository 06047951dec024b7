// A scenario whose device is a file of the user's.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "shared/cost/cost_model.h"
#include "shared/graph/compile.h"
#include "shared/hardware/device_file_json.h"
#include "shared/lower/lower.h"
#include "shared/plan/plan.h"
#include "shared/scenario/typical_batch.h"
#include "shared/scenario_io/scenario_profile.h"
#include "tests/shared/support/device_copies.h"
#include "tests/shared/support/scenario_files.h"

namespace polyphony {
namespace {

using Files = std::map<std::string, std::string>;

LoadText in(const Files& files) {
  return [files](const std::string& path) {
    const auto found = files.find(path);
    if (found == files.end()) throw InputError(path, "", "no such file", "check the path");
    return found->second;
  };
}

std::string on(const std::string& node, const std::string& more = "") {
  return R"({"polyphony": 1, "model": {"language": {"preset": "llama-3.1-8b"}},
      "cluster": {"node": )" +
         node + more + R"(, "nodes": 2},
      "data": {"source": "synthetic", "text": {"tokens": 4096}, "global_batch": 16},
      "layout": {"placement": "homogeneous", "microbatches": 2,
                 "all": {"tp": 2, "pp": 2, "shard": "optimizer"}}})";
}

Seconds step_of(const Scenario& scenario, const HardwareProfile& profile) {
  const Layout& layout = *scenario.layout;
  const Program program =
      lower(scenario, layout, make_plan(scenario, layout), typical_batch(scenario));
  const auto compiled = compile(program);
  REQUIRE(std::holds_alternative<Compiled>(compiled));
  const auto& graph = std::get<Compiled>(compiled);
  return estimate(program, graph, price(program, graph, scenario.cluster, profile)).step();
}

bool noted(const Scenario& scenario, const std::string& note) {
  return std::find(scenario.notes.begin(), scenario.notes.end(), note) != scenario.notes.end();
}

}  // namespace

TEST_SUITE("a device of the user's own") {
  TEST_CASE("the numbers of a shipped device give its prediction, to the bit") {
    for (const char* name : {"A40", "H100", "B200", "GB200", "MI300X", "cpu-core"}) {
      CAPTURE(name);
      const LoadText load = in({{"here/ours.json", test::copied_device(name, "ours")}});
      const std::string ranks = R"(", "ranks": 4})";
      const Scenario shipped =
          read_scenario(on(R"({"device": ")" + std::string(name) + ranks), "here/s.json", load);
      const Scenario own =
          read_scenario(on(R"({"device": "ours.json)" + ranks), "here/s.json", load);
      CHECK(own.cluster.profile == "here/ours.json");
      CHECK(own.training.precision == shipped.training.precision);
      Cluster renamed = own.cluster;
      renamed.device.name = shipped.cluster.device.name;
      renamed.profile = shipped.cluster.profile;
      CHECK(renamed == shipped.cluster);
      for (const char* stack : {"", "fsdp2", "megatron-core"}) {
        CAPTURE(stack);
        const HardwareProfile theirs = scenario_profile(shipped, load, "", stack),
                              ours = scenario_profile(own, load, "", stack);
        CHECK(ours.certainty == theirs.certainty);
        CHECK(ours.step_error == theirs.step_error);
        const Seconds step = step_of(own, ours);
        CHECK(step.count() > 0);
        CHECK(step == step_of(shipped, theirs));
      }
      // It can be named as a profile, too, and the resolved scenario means the same.
      CHECK(scenario_profile(shipped, load, "here/ours.json").name == "ours-roofline");
      const Scenario again = read_scenario(resolved_text(own), "s.json", load);
      CHECK(again.cluster == own.cluster);
      CHECK(again.notes == own.notes);
    }
  }

  TEST_CASE("figures of the scenario replace those of the file") {
    const LoadText load = in({{"here/ours.json", test::copied_device("GB200", "ours")}});
    const Scenario own = read_scenario(
        on(R"({"device": "ours.json", "ranks": 4, "link": "100GBps"})"), "here/s.json", load);
    CHECK(own.cluster.node_link.rate.value == 100e9);
    CHECK(own.cluster.domain == 72);
    const Scenario more = read_scenario(on(R"({"device": "ours.json", "ranks": 4})"), "here/s.json",
                                        load, {parse_override("cluster.node.device.bf16=1PFLOPS")});
    CHECK(more.cluster.device.bf16.value == 1e15);
    CHECK(more.cluster.profile == "here/ours.json");  // joined to the scenario's folder once
    CHECK(more.cluster.domain == 72);
    CHECK(scenario_profile(more, load).device == more.cluster.device);
    const Scenario other = read_scenario(
        on(R"({"device": "ours.json", "ranks": 4})", R"(, "profile": "h100-roofline")"),
        "here/s.json", load);
    CHECK(scenario_profile(other, load).gemm_efficiency == 0.673);
  }

  TEST_CASE("an answer says which efficiencies a device has that it was not measured on") {
    const std::string figures =
        R"({"device": 1, "name": "X1", "fp32": "60TFLOPS", "bf16": "600TFLOPS", "memory_rate": "3TBps",
            "memory": "64GiB", "link": "300GBps", "nic": "200Gbps")";
    const LoadText load =
        in({{"bare.json", figures + "}"}, {"borrowed.json", figures + R"(, "fit": "h100"})"}});
    const Scenario bare =
        read_scenario(on(R"({"device": "bare.json", "ranks": 4})"), "s.json", load);
    const std::string note =
        "device X1 (bare.json) has no fit: the efficiencies of cpu-core are assumed, deliberately "
        "slow";
    CHECK(noted(bare, note));
    CHECK(scenario_profile(bare, load).gemm_efficiency == 0.6);
    const Scenario borrowed =
        read_scenario(on(R"({"device": "borrowed.json", "ranks": 4})"), "s.json", load);
    CHECK_FALSE(noted(borrowed, note));
    CHECK(scenario_profile(borrowed, load).certainty.footing == Footing::foreign_borrowed);
    CHECK(scenario_profile(borrowed, load, "", "fsdp").certainty.footing == Footing::borrowed);
  }

  TEST_CASE("the example of scenarios/devices is read") {
    const std::string path = "scenarios/s.json";
    const Scenario scenario = read_scenario(
        on(R"({"device": "devices/h100_pcie.json", "ranks": 8})"), path, test::file_text);
    CHECK(scenario.cluster.device.name == "H100-PCIe");
    CHECK(scenario.training.precision == NumberFormat::bf16);
    CHECK(scenario.cluster.host_memory.value == 8 * 76.8e9);
    CHECK(scenario_profile(scenario, test::file_text).gemm_efficiency == 0.673);
  }

  TEST_CASE("a file that is missing or wrong is refused, with its name") {
    const auto refused = [](const std::string& node, const Files& files) {
      return test::refusal(on(node), in(files));
    };
    const std::string node = R"({"device": "ours.json", "ranks": 4})";
    CHECK(refused(node, {}) ==
          "s.json: /cluster/node/device: ours.json: no such file (check the path)");
    CHECK(refused(node, {{"ours.json", R"({"device": 1})"}}) ==
          "ours.json: key \"name\" is missing (name of the device: a text such as \"H100\")");
    CHECK(refused(node, {{"ours.json",
                          R"({"device": 1, "name": "X1", "fp32": "60TFLOPS", "memory_rate": "3TBps",
                                           "memory": "64GiB", "fit": "v100"})"}})
              .starts_with("ours.json: /fit: no fit \"v100\" ships with the program ("));
    CHECK(refused(node, {{"ours.json",
                          R"({"device": 1, "name": "X1", "fp32": "60TFLOPS", "memory_rate": "3TBps",
                                           "memory": "64GiB"})"}}) ==
          "s.json: /cluster/node: key \"link\" is missing (a device with figures of its own has no "
          "default link rate; write it, such as \"450GBps\")");
    CHECK(
        refused(R"({"device": "ours", "ranks": 4})", {})
            .starts_with("s.json: /cluster/node/device: no device \"ours\" ships with the program "
                         "("));
  }
}

}  // namespace polyphony
