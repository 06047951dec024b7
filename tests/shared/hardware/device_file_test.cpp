// Devices and fits as files: those that ship, and files of a user.
#include "shared/hardware/device_file_json.h"

#include <doctest/doctest.h>

#include "shared/hardware/fit_json.h"
#include "shared/hardware/hardware_json.h"
#include "shared/hardware/roofline.h"
#include "shared/hardware/shipped_certainty.h"
#include "shared/hardware/shipped_files.h"
#include "tests/shared/support/device_copies.h"
#include "tests/shared/support/scenario_files.h"

namespace polyphony {
namespace {

const std::string kHead = R"({"device": 1, "name": "X1", "fp32": "60TFLOPS", )";
const std::string kFigures = R"("memory_rate": "3TBps", "memory": "64GiB")";

std::string device_refusal(const std::string& text) {
  try {
    read_own_device(text, "x1.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

std::string stem_of(const std::string& path) {
  const auto slash = path.rfind('/') + 1;
  return path.substr(slash, path.rfind('.') - slash);
}

const std::string kFit =
    R"("rows": "12 steps of ours", "gemm_efficiency": 0.7, "gemm_half_size": 0,
       "grouped_efficiency": 0.9, "attention_efficiency": 0.6, "early_attention_efficiency": 0.3,
       "attention_backward": 0.8, "attention_half_keys": 200, "memory_efficiency": 0.75,
       "optimizer_bytes_efficiency": 0.8)";
const std::string kErrors = R"("errors": {"gemm_efficiency": 0.05, "attention_efficiency": 0.1})";

}  // namespace

TEST_SUITE("device files") {
  TEST_CASE("a shipped device is called like its file, and says where its figures come from") {
    REQUIRE(device_files().size() == shipped_devices().size());
    for (std::size_t i = 0; i < device_files().size(); ++i) {
      const ShippedDevice& device = shipped_devices()[i];
      const std::string path = device_files()[i].path;
      CHECK(default_profile(device.device.name) == stem_of(path) + "-roofline");
      CHECK(device.source.size() > 200);
      CHECK(device.file.empty());
      // The texts inside the program are those of the files.
      CHECK(test::file_text(path) == device_files()[i].text);
    }
    for (std::size_t i = 0; i < fit_files().size(); ++i) {
      CHECK(shipped_fits()[i].name == stem_of(fit_files()[i].path));
      CHECK(find_device(shipped_fits()[i].device) != nullptr);
    }
    CHECK(find_fit("v100") == nullptr);
  }

  TEST_CASE("shipped figures: data sheets, links in bytes per second, memory that programs get") {
    // 80 and 40 GiB minus 1.5; 185 GiB minus 526 MiB; 191,555,541,401 bytes minus 526 · 2^20.
    CHECK(find_device("H100")->device.memory == Bytes(std::int64_t{157} << 29));
    CHECK(find_device("A100-40")->device.memory == Bytes(std::int64_t{77} << 29));
    CHECK(find_device("H200")->device.memory == Bytes(149'518'548'992));
    CHECK(find_device("GB200")->device.memory == Bytes((std::int64_t{185 * 1024 - 526}) << 20));
    CHECK(find_device("B200")->device.memory == Bytes(191'555'541'401 - (std::int64_t{526} << 20)));
    CHECK(find_device("A40")->device.fp32.value == 37.4e12);
    CHECK(find_device("A40")->device.bf16.value == 149.7e12);
    CHECK(find_device("L40S")->device.processors == 142);
    CHECK(find_device("H20")->device.memory_rate.value == 4e12);
    CHECK(find_device("A40")->node_link == Link{BytesPerSecond(31.5e9), Seconds(2e-6)});
    CHECK(find_device("H800")->node_link == Link{BytesPerSecond(200e9), Seconds(0.94e-6)});
    // 400 Gb/s, ConnectX-7, for each GPU.
    CHECK(find_device("GB200")->fabric_link == Link{BytesPerSecond(50e9), Seconds(5e-6)});
    CHECK(find_device("B200")->device.memory_rate.value == 7.7e12);
    CHECK(find_device("B200")->host_link == Link{BytesPerSecond(63e9), Seconds(2e-6)});
    CHECK(find_device("B200")->host_memory.value == 89.6e9);
    CHECK(find_device("cpu-core")->node_link == Link{BytesPerSecond(2e9), Seconds(20e-6)});
    CHECK(find_device("cpu-core")->fabric_link == Link{BytesPerSecond(1.25e9), Seconds(30e-6)});
    CHECK(find_device("GB200")->nodes.size() == 2);
    CHECK(find_device("H20")->nodes.front().name == "hgx-h20");
    CHECK(find_device("A40")->nodes.empty());
  }

  TEST_CASE("figures of the machines of 2023 to 2026 are those of their sources") {
    struct Figures {
      const char* name;
      double fp32, bf16, fp8, nvfp4;  // TFLOP/s, without sparsity; 0: not supported
      double memory_rate;             // GB/s
      std::int64_t memory;            // MiB that a program gets
      double link, nic;               // GB/s in one direction
    };
    // Memory: 284,208, 275,040, 97,887 and 32,607 MiB that nvidia-smi shows, minus 526; 192, 256,
    // 288, 24 and 80 GiB minus 1.5. A NIC of 400 or 800 Gb/s for each GPU; one of 200 Gb/s for
    // four. xGMI: seven links of 64 and 76.5 GB/s. A800: 400 GB/s, half in each direction.
    for (const Figures& wanted : std::vector<Figures>{
             {"B300", 75, 2250, 4500, 14000, 7750, 275040 - 526, 900, 100},
             {"GB300", 80, 2500, 5000, 15000, 8000, 284208 - 526, 900, 100},
             {"MI300X", 163.4, 1307.4, 2614.9, 0, 5300, 192 * 1024 - 1536, 7 * 64, 50},
             {"MI325X", 163.4, 1307.4, 2614.9, 0, 6000, 256 * 1024 - 1536, 7 * 64, 50},
             {"MI355X", 157.3, 2500, 5000, 0, 8000, 288 * 1024 - 1536, 7 * 76.5, 50},
             {"RTX-4090", 82.6, 165.2, 330.3, 0, 1008, 24 * 1024 - 1536, 31.5, 6.25},
             {"RTX-5090", 104.8, 209.5, 419, 1676, 1792, 32607 - 526, 63, 6.25},
             {"RTX-PRO-6000", 126, 503.8, 1007.6, 2015.2, 1792, 97887 - 526, 63, 6.25},
             {"A800", 19.5, 312, 0, 0, 2039, 80 * 1024 - 1536, 200, 25}}) {
      CAPTURE(wanted.name);
      const ShippedDevice& found = *find_device(wanted.name);
      const auto close = [](double value) { return doctest::Approx(value).epsilon(1e-12); };
      CHECK(found.device.fp32.value == close(wanted.fp32 * 1e12));
      CHECK(found.device.bf16.value == close(wanted.bf16 * 1e12));
      CHECK(found.device.fp8.value == close(wanted.fp8 * 1e12));
      CHECK(found.device.nvfp4.value == close(wanted.nvfp4 * 1e12));
      CHECK(found.device.memory_rate.value == close(wanted.memory_rate * 1e9));
      CHECK(found.device.memory == Bytes(wanted.memory << 20));
      CHECK(found.node_link.rate.value == close(wanted.link * 1e9));
      CHECK(found.fabric_link.rate.value == close(wanted.nic * 1e9));
    }
    for (const char* name : {"MI300X", "MI325X", "MI355X"}) {
      CAPTURE(name);
      const ShippedDevice& found = *find_device(name);
      // A full mesh of eight: seven links.
      CHECK(found.peer_link.value * 7 == doctest::Approx(found.node_link.rate.value));
      CHECK(found.nodes.front().ranks == 8);
      const HardwareProfile& profile = *find_profile(default_profile(name));
      CHECK(profile.collectives == CollectiveLibrary::rccl);
      CHECK(profile.source.find("RCCL") != std::string::npos);
      CHECK(profile.source.find("NVLink") == std::string::npos);
    }
    CHECK(find_profile("gb300-roofline")->collectives == CollectiveLibrary::nccl);
    CHECK(find_profile("gb300-roofline")->counts_on_device);  // of NVLink domains
    CHECK(find_device("B300")->peer_link.value == 0);
  }

  TEST_CASE("a fit of too few measurements has the error of a borrowed one") {
    const auto footing = [](const char* name, const char* stack) {
      const ShippedDevice& device = *find_device(name);
      return footing_of(device.device, *device.fit, stack);
    };
    CHECK(footing("MI300X", "fsdp") == Footing::borrowed);
    CHECK(footing("MI325X", "fsdp2") == Footing::foreign_borrowed);
    CHECK(footing("MI355X", "megatron-core") == Footing::borrowed);
    // B300 has less than the peaks of GB200; GB300 has a fit of eleven rows; A800 is an A100.
    CHECK(footing("B300", "megatron-bridge") == Footing::borrowed);
    CHECK(footing("GB300", "megatron-bridge") == Footing::borrowed);
    CHECK(find_profile("gb300-roofline")->gemm_efficiency == 0.75);
    CHECK(find_profile("b300-roofline")->gemm_efficiency ==
          find_profile("gb200-roofline")->gemm_efficiency);
    CHECK(footing("A800", "megatron-core") == Footing::known);
    CHECK(footing("RTX-4090", "fsdp") == Footing::borrowed);
    // Half of the 90 % interval: a borrowed fit's residual of 0.2338, our own stack's, which is in no
    // fit, of 0.0732, and 0.23 of its GEMMs add up to 0.336; times 2.015, the quantile of Student's
    // t with five degrees of freedom: e^0.677.
    CHECK(find_profile("mi300x-roofline")->step_error == doctest::Approx(0.968).epsilon(2e-3));
    const std::string few = R"(, "fit": {"calibrated": false, )" + kFit + ", " + kErrors + "}}";
    const ShippedDevice own = read_own_device(kHead + kFigures + few, "x1.json");
    CHECK(footing_of(own.device, *own.fit, "fsdp") == Footing::foreign_borrowed);
  }

  TEST_CASE("a device has the efficiencies, errors and ranges of the fit that it names") {
    const HardwareProfile a40 = *find_profile("a40-roofline");
    CHECK(a40.gemm_efficiency == 0.802);
    CHECK(a40.gemm_half_size == 725);
    CHECK(a40.attention_half_keys == 217);
    CHECK(a40.optimizer_bytes_efficiency == 0.8);
    CHECK(a40.certainty.errors[0].at("gemm_efficiency") == 0.034);
    CHECK(a40.certainty.errors[2].at("attention_efficiency") == 0.11);
    CHECK(a40.certainty.fitted.message_bytes == FittedRange{2097152, 805306368});
    const HardwareProfile h20 = *find_profile("h20-roofline");
    CHECK(h20.gemm_efficiency == 0.673);
    CHECK_FALSE(h20.certainty.fitted.message_bytes);
    CHECK(find_profile("b200-roofline")->grouped_efficiency == 0.62);
    CHECK(find_profile("gb200-roofline")->certainty.errors[0].at("gemm_efficiency") == 0.15);
    CHECK_FALSE(find_device("cpu-core")->fit);
    CHECK(find_profile("cpu-core-roofline")->products_wait);
  }

  TEST_CASE("a user's copy of a shipped device has its profile, under another name") {
    for (const ShippedDevice& shipped : shipped_devices()) {
      CAPTURE(shipped.device.name);
      const ShippedDevice own =
          read_own_device(test::copied_device(shipped.device.name, "ours"), "ours.json");
      CHECK(own.file == "ours.json");
      HardwareProfile profile = roofline_profile(own);
      CHECK(profile.name == "ours-roofline");
      CHECK(parse_profile(test::copied_device(shipped.device.name, "ours"), "ours.json") ==
            profile);
      const HardwareProfile& same = *find_profile(default_profile(shipped.device.name));
      profile.name = same.name;
      profile.source = same.source;
      profile.device.name = same.device.name;
      CHECK(profile == same);
      CHECK(own.node_link == shipped.node_link);
      CHECK(own.host_memory == shipped.host_memory);
      CHECK(own.domain == shipped.domain);
    }
  }

  TEST_CASE("a fit that a file states itself is of its device, without measured stacks") {
    const ShippedDevice own = read_own_device(
        kHead + kFigures + R"(, "fit": {)" + kFit + ", " + kErrors + "}}", "x1.json");
    REQUIRE(own.fit);
    CHECK(own.fit->name == "X1");
    HardwareProfile profile = roofline_profile(own);
    CHECK(profile.gemm_efficiency == 0.7);
    CHECK(profile.attention_backward == 0.8);
    CHECK(profile.source.find("fitted to 12 steps of ours; peaks: x1.json;") != std::string::npos);
    CHECK(profile.certainty.footing == Footing::foreign);
    CHECK(profile.certainty.errors[0].at("gemm_efficiency") == 0.05);
    CHECK(footing_of(own.device, *own.fit, "fsdp") == Footing::foreign);
    // Measured on a shipped device with other peaks: borrowed.
    const ShippedDevice borrowed = read_own_device(
        kHead + kFigures + R"(, "fit": {"device": "H100", )" + kFit + ", " + kErrors + "}}",
        "x1.json");
    CHECK(footing_of(borrowed.device, *borrowed.fit, "fsdp") == Footing::borrowed);
  }

  TEST_CASE("a file without a fit has the assumed efficiencies of cpu-core") {
    const HardwareProfile profile =
        roofline_profile(read_own_device(kHead + kFigures + "}", "x1.json"));
    const HardwareProfile& core = *find_profile("cpu-core-roofline");
    CHECK(profile.gemm_efficiency == core.gemm_efficiency);
    CHECK(profile.step_error == 0.5);
    CHECK(profile.source ==
          "assumed, deliberately slow, as for cpu-core: x1.json has no fit; name one, or profile "
          "the machine");
    CHECK(profile.certainty == Certainty{});
  }

  TEST_CASE("a bad file is refused with its name, the JSON pointer and what to do") {
    CHECK(device_refusal(kHead + kFigures + "}") == "accepted");
    CHECK(
        device_refusal(kHead + R"("memory_rate": "3TBps"})") ==
        "x1.json: key \"memory\" is missing (memory size: a number of bytes with its unit, such as "
        "\"80GiB\")");
    CHECK(device_refusal(R"({"name": "X1", "fp32": "60TFLOPS", )" + kFigures + "}") ==
          "x1.json: key \"device\" is missing (version of the format: a whole number from 1 to 1)");
    CHECK(device_refusal(kHead + R"("memory_rate": "3TBps", "memory": "64GBps"})") ==
          "x1.json: /memory: \"64GBps\" is not a number of bytes: unknown unit \"GBps\" (units: B, "
          "kB, KiB, MB, MiB, GB, GiB, TB, TiB, PB)");
    CHECK(device_refusal(kHead + kFigures + R"(, "link": 450})") ==
          "x1.json: /link: 450 has no unit (write a data rate with its unit, such as \"450GBps\")");
    CHECK(device_refusal(kHead + kFigures + R"(, "memry_rate": "3TBps"})") ==
          "x1.json: /memry_rate: unknown key \"memry_rate\" (did you mean \"memory_rate\"?)");
    CHECK(device_refusal(kHead + kFigures + R"(, "source": {"memry": "data sheet"}})") ==
          "x1.json: /source/memry: unknown key \"memry\" (did you mean \"memory\"?)");
    CHECK(device_refusal(kHead + kFigures + R"(, "fit": "h10"})") ==
          "x1.json: /fit: no fit \"h10\" ships with the program (did you mean \"h100\"?, or write "
          "its numbers: {\"rows\": …})");
    CHECK(device_refusal(kHead + kFigures + R"(, "fit": {)" + kFit + "}}") ==
          "x1.json: /fit: key \"errors\" is missing (one standard deviation of the error of these "
          "efficiencies: an object { … })");
    CHECK(device_refusal(kHead + kFigures + R"(, "fit": {"device": "H101", )" + kFit + ", " +
                         kErrors + "}}") ==
          "x1.json: /fit/device: no device \"H101\" ships with the program (did you mean "
          "\"H100\"?, or remove the key for this device itself)");
    CHECK(device_refusal(test::copied_device("H100", "h100")) ==
          "x1.json: /name: the name of a device of your own must not be that of a shipped one (got "
          "\"h100\") (choose another, such as \"my-h100\")");
    CHECK(device_refusal(kHead + kFigures + R"(, "nodes": {"hgx-x1": 8}})") ==
          "x1.json: /nodes: nodes must not be given: only shipped devices have named nodes (write "
          "the number of accelerators at \"ranks\" of the scenario's node)");
    CHECK(device_refusal(to_json(*find_profile("h100-roofline"))) ==
          "x1.json: is a hardware profile, not a device (name it at \"profile\" of the cluster, "
          "next to \"node\")");
    CHECK(own_device_in(to_json(*find_profile("h100-roofline")), "p.json") == std::nullopt);
  }
}

}  // namespace polyphony
