// Which profile and stack a prediction takes.
#include "shared/scenario_io/scenario_profile.h"

#include <doctest/doctest.h>

#include "shared/hardware/devices.h"
#include "shared/hardware/hardware_json.h"
#include "tests/shared/support/example_models.h"

namespace polyphony {
namespace {

std::string nothing(const std::string& path) {
  throw InputError(path, "", "no such file", "check the path");
}

}  // namespace

TEST_SUITE("scenario profile") {
  TEST_CASE("a stack: as asked, as the scenario trains, as the profile has it") {
    Scenario scenario = examples::vlm_on_h100();
    CHECK(scenario_profile(scenario, nothing).stack.name == "polyphony");
    CHECK(scenario_profile(scenario, nothing, "", "megatron-core").stack ==
          *find_stack("megatron-core"));
    scenario.training.software = "fsdp2";
    CHECK(scenario_profile(scenario, nothing).stack == *find_stack("fsdp2"));
    CHECK(scenario_profile(scenario, nothing, "", "polyphony").stack.name == "polyphony");
    scenario.training.software = "a stack of our own";  // warned about (other_software)
    CHECK(scenario_profile(scenario, nothing).stack.name == "polyphony");
    try {
      scenario_profile(scenario, nothing, "", "megatron-cor");
      FAIL("accepted");
    } catch (const InputError& error) {
      CHECK(std::string(error.what()) ==
            "stack: no software stack \"megatron-cor\" ships with the program (did you mean "
            "\"megatron-core\"?)");
    }
  }

  TEST_CASE("a profile: as asked, else the scenario's own, on the scenario's device") {
    Scenario scenario = examples::vlm_on_h100();
    CHECK(scenario_profile(scenario, nothing, "a100-80-roofline").device.name == "A100-80");
    const auto refusal = [&](const std::string& name) {
      try {
        scenario_profile(scenario, nothing, name);
      } catch (const InputError& error) {
        return std::string(error.what());
      }
      return std::string("accepted");
    };
    CHECK(refusal("a100-80") ==
          "a100-80: is neither a shipped profile nor a file that can be read (did you mean "
          "\"a100-80-roofline\"?)");
    CHECK(refusal("my/h100.json") == "my/h100.json: no such file (check the path)");
    scenario.cluster.device.bf16 = 2.0 * scenario.cluster.device.bf16;
    CHECK(scenario_profile(scenario, nothing).device == scenario.cluster.device);
    HardwareProfile own = *find_profile("h100-roofline");
    own.name = "own";
    own.stack = *find_stack("fsdp");
    const auto load = [&](const std::string& path) {
      CHECK(path == "here/own.json");  // not joined to the scenario's folder a second time
      return to_json(own);
    };
    scenario.file = "here/scenario.json";
    scenario.cluster.profile = "here/own.json";
    CHECK(scenario_profile(scenario, load).name == "own");
    CHECK(scenario_profile(scenario, load).stack == own.stack);
    own.device.bf16 = {};  // a device without the format that the scenario trains in
    try {
      scenario_profile(scenario, load);
      FAIL("accepted");
    } catch (const InputError& error) {
      CHECK(std::string(error.what()) ==
            "here/own.json: /device: H100 has no peak rate in bf16, the precision of the training "
            "(add \"bf16\" to the device, or train in fp32)");
    }
  }

  TEST_CASE("FP8 training sets the format of the GEMMs where the device has it") {
    Scenario scenario = examples::vlm_on_h100();
    scenario.file = "s.json";
    CHECK_FALSE(scenario_profile(scenario, nothing).stack.matrix.has_value());
    scenario.training.fp8 = Fp8Scaling::rowwise;
    CHECK(scenario_profile(scenario, nothing).stack.matrix == NumberFormat::fp8);
    CHECK(scenario_profile(scenario, nothing, "", "megatron-core").stack.matrix ==
          NumberFormat::fp8);
    const auto on = [&](const char* device) {
      scenario.cluster.device = find_device(device)->device;
      scenario.cluster.profile = default_profile(device);
    };
    on("A100-80");
    try {
      scenario_profile(scenario, nothing);
      FAIL("accepted");
    } catch (const InputError& error) {
      CHECK(std::string(error.what()) ==
            "s.json: /training/fp8: A100-80 has no peak rate in fp8 (remove fp8 from the training, "
            "or add \"fp8\" to the device)");
    }
    on("cpu-core");  // computes the numbers in fp32
    CHECK_FALSE(scenario_profile(scenario, nothing).stack.matrix.has_value());
  }
}

}  // namespace polyphony
